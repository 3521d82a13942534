// Whether this process is the child of a fork.
//
// A child has one thread and a copy of every lock as it was, perhaps held by a thread that the
// child does not have; and CUDA does not work in it. So our own state is not touched there: memory
// that the engine handed out before the fork stays as it is, for both to read and write (unless
// BUDDY_FORK=hide keeps it from the child), and the pins are the parent's.
#pragma once

#include <atomic>

namespace pinbuddy {

inline std::atomic<bool> forked_child{false};

inline bool in_forked_child() {
  return forked_child.load(std::memory_order_relaxed);
}

} // namespace pinbuddy
