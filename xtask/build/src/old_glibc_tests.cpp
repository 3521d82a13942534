// A program of the old interface, which the tests of old_glibc.rs link and run.
#include <dlfcn.h>
#include <sys/stat.h>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>
static int constructed;
__attribute__((constructor)) static void construct(int count, char**) { constructed = count; }
int main(int, char** arguments) {
  auto answer = std::make_shared<int>(0);
  std::thread([answer] { *answer = 12; }).join();
  std::timed_mutex mutex;
  mutex.lock();
  const auto before = std::chrono::steady_clock::now();
  bool got = true;
  std::thread([&] { got = mutex.try_lock_for(std::chrono::milliseconds(30)); }).join();
  std::mutex other;
  std::condition_variable never;
  std::unique_lock<std::mutex> lock(other);
  never.wait_for(lock, std::chrono::milliseconds(30));
  const auto waited = std::chrono::steady_clock::now() - before;
  struct stat result;
  const bool there = stat("/proc/self/exe", &result) == 0 && S_ISREG(result.st_mode) && dlsym(RTLD_DEFAULT, "puts");
  std::printf("%d %s %d %d %d", constructed, arguments[1], *answer, there, !got && waited >= std::chrono::milliseconds(58));
}
