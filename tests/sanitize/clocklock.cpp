// std::timed_mutex waits by pthread_mutex_clocklock, which GCC's ThreadSanitizer does not see before GCC 14; by
// pthread_mutex_timedlock it does. Without this each such lock looks as if nobody held it.
#include <pthread.h>
#include <time.h>

extern "C" int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  constexpr long kSecond = 1'000'000'000;
  timespec now{};
  timespec wall{};
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  long nanoseconds = wall.tv_nsec + until->tv_nsec - now.tv_nsec;
  wall.tv_sec += until->tv_sec - now.tv_sec;
  for (; nanoseconds < 0; nanoseconds += kSecond) {
    --wall.tv_sec;
  }
  for (; nanoseconds >= kSecond; nanoseconds -= kSecond) {
    ++wall.tv_sec;
  }
  wall.tv_nsec = nanoseconds;
  return pthread_mutex_timedlock(mutex, &wall);
}
