// A number for each thread, which no other has as long as it lives.
//
// A thread that ends gives its number back, and the next one that asks takes the smallest. So numbers stay small in a
// program that makes threads again and again, as a data loader does in each epoch; and requests of threads that never
// live at the same time, with the same number, are one sequence to whoever records or plans them.
#pragma once

#include <cstdint>

namespace pinbuddy {

class ThreadNumber {
 public:
  // How many threads have numbers at once, and what all others get: those beyond, and ends of threads that have given
  // theirs back. Rust knows as many (`rust-core/slots/src/slots/threads.rs`).
  static constexpr std::uint32_t kMost = 1U << 16;

  // This thread's.
  static std::uint32_t own() {
    return number_ != 0 ? number_ - 1 : take();
  }

 private:
  struct Owner;

  static std::uint32_t take();

  // One more than the number; 0: none yet.
  static constinit inline thread_local std::uint32_t number_ = 0;
};

} // namespace pinbuddy
