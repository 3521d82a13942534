// Whether this process is a child whose engine is its parent's, and so off.
//
// After a fork a child has one thread and a copy of every lock, perhaps held by a thread that it does not
// have; and CUDA does not work in it. So a child does not touch our state: memory that the engine handed
// out before the fork stays as it is, for both to read and write (unless BUDDY_FORK=hide hides it), and
// the pins are the parent's.
#pragma once

#include <atomic>

namespace pinbuddy {

inline std::atomic<bool> child{false};

inline bool is_child() {
  return child.load(std::memory_order_relaxed);
}

} // namespace pinbuddy
