// Which of the defects in defects.toml this process has: the one that PINBUDDY_SEEDED names. And what a sanitizer is told.
#pragma once

#include <cstdlib>
#include <cstring>
#include <new>

// Set before the library's own constructor, and never again.
inline const char* seeded_name = nullptr;
[[gnu::constructor(101)]] inline void read_seeded_name() {
  seeded_name = std::getenv("PINBUDDY_SEEDED");
}

inline bool seeded(const char* name) {
  return seeded_name != nullptr && std::strcmp(seeded_name, name) == 0;
}

// A lock that a defect leaves out.
template <typename Held>
class UnlessSeeded {
 public:
  template <typename Mutex>
  UnlessSeeded(const char* name, Mutex& mutex) : held_(!seeded(name)) {
    if (held_) {
      new (memory_) Held(mutex);
    }
  }
  ~UnlessSeeded() {
    if (held_) {
      reinterpret_cast<Held*>(memory_)->~Held();
    }
  }
  UnlessSeeded(const UnlessSeeded&) = delete;
  UnlessSeeded& operator=(const UnlessSeeded&) = delete;

 private:
  bool held_;
  alignas(Held) unsigned char memory_[sizeof(Held)];
};

// What Rust orders, and a sanitizer does not see.
#ifdef __SANITIZE_THREAD__
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#else
inline void __tsan_acquire(void*) {}
inline void __tsan_release(void*) {}
#endif
inline void hand_over(void* it) {
  __tsan_release(it);
}
inline void take_over(void* it) {
  __tsan_acquire(it);
}
