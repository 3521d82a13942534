// What glibc has only since 2.29 or later, for libraries and programs that are linked against the interface of 2.28.
// Each function does as glibc's does, but that a wait by another clock ends by CLOCK_REALTIME. Hidden: nobody else is to find it. No header is read, since those of a newer
// system rename functions.

#pragma GCC visibility push(hidden)

struct timespec {
  long seconds, nanoseconds;
};

extern int clock_gettime(int, struct timespec*) __attribute__((visibility("default")));
extern int pthread_cond_timedwait(void*, void*, const struct timespec*) __attribute__((visibility("default")));
extern int pthread_mutex_timedlock(void*, const struct timespec*) __attribute__((visibility("default")));

// Threads may run at any time: libstdc++ counts references atomically.
char __libc_single_threaded = 0;

// A time of another clock, by CLOCK_REALTIME.
static struct timespec realtime(int clock, const struct timespec* until) {
  struct timespec now, real;
  clock_gettime(clock, &now);
  clock_gettime(0, &real);
  real.seconds += until->seconds - now.seconds;
  real.nanoseconds += until->nanoseconds - now.nanoseconds;
  const long second = 1000000000;
  const long carried = real.nanoseconds < 0 ? -1 : real.nanoseconds >= second;
  real.seconds += carried;
  real.nanoseconds -= carried * second;
  return real;
}

int pthread_mutex_clocklock(void* mutex, int clock, const struct timespec* until) {
  const struct timespec real = realtime(clock, until);
  return pthread_mutex_timedlock(mutex, &real);
}

int pthread_cond_clockwait(void* condition, void* mutex, int clock, const struct timespec* until) {
  const struct timespec real = realtime(clock, until);
  return pthread_cond_timedwait(condition, mutex, &real);
}

#ifdef __x86_64__
#define STAT_VERSION 1
#else
#define STAT_VERSION 0
#endif

extern int __xstat64(int, const char*, void*) __attribute__((visibility("default")));
extern int __fxstat64(int, int, void*) __attribute__((visibility("default")));
extern int __lxstat64(int, const char*, void*) __attribute__((visibility("default")));
extern int __fxstatat64(int, int, const char*, void*, int) __attribute__((visibility("default")));

// Where `long` has 64 bits, the two kinds of results are one.
#define STATS(stat, fstat, lstat, fstatat)                                                   \
  int stat(const char* path, void* result) {                                                 \
    return __xstat64(STAT_VERSION, path, result);                                            \
  }                                                                                          \
  int fstat(int file, void* result) {                                                        \
    return __fxstat64(STAT_VERSION, file, result);                                           \
  }                                                                                          \
  int lstat(const char* path, void* result) {                                                \
    return __lxstat64(STAT_VERSION, path, result);                                           \
  }                                                                                          \
  int fstatat(int folder, const char* path, void* result, int flags) {                       \
    return __fxstatat64(STAT_VERSION, folder, path, result, flags);                          \
  }
STATS(stat, fstat, lstat, fstatat)
STATS(stat64, fstat64, lstat64, fstatat64)

// The names that headers since 2.38 give to the functions that know binary literals.
#define RENAMED(type, name)                                                                      \
  extern type name(const char*, char**, int) __attribute__((visibility("default")));             \
  type __isoc23_##name(const char* text, char** end, int base) {                                 \
    return name(text, end, base);                                                                \
  }
RENAMED(long, strtol)
RENAMED(unsigned long, strtoul)
RENAMED(long long, strtoll)
RENAMED(unsigned long long, strtoull)

// What a newer g++ calls where an exception may not leave: of libstdc++, which programs without C++ lack.
extern void* __cxa_begin_catch(void*) __attribute__((weak, visibility("default")));
extern void terminate(void) __asm__("_ZSt9terminatev") __attribute__((weak, visibility("default")));

void __cxa_call_terminate(void* exception) {
  if (exception)
    __cxa_begin_catch(exception);
  terminate();
}

// Before 2.34 a program brought its own `init` for glibc to call; the start files of a newer system have none.
typedef void (*Start)(int, char**, char**);
extern const Start __init_array_start[] __attribute__((weak)), __init_array_end[] __attribute__((weak));

static void init(int count, char** arguments, char** environment) {
  for (const Start* each = __init_array_start; each < __init_array_end; each++)
    (*each)(count, arguments, environment);
}

typedef int Main(void*, int, char**, Start, void*, void*, void*);
extern void* dlsym(void*, const char*) __attribute__((visibility("default")));

// glibc's own is looked up: linkers disagree on whose a name with a version is, beside this one.
int __libc_start_main(void* main, int count, char** arguments, void* none, void* fini, void* end, void* stack) {
  (void)none;
  void* const next = (void*)-1;
  Main* const start = (Main*)dlsym(next, "__libc_start_main");
  return start(main, count, arguments, init, fini, end, stack);
}
