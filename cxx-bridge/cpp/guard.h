// Finds memory that is used after it was freed, and past its end: BUDDY_GUARD=1, for programs that are being
// debugged.
//
// Each block is longer than was asked for, and the tail is filled with one pattern; a block that is freed and that no
// stream uses any more is filled with another. Tails are looked at when a block is freed, freed memory when it is handed
// out again, before it is unpinned, and when the process ends. What has changed was written by somebody who does not
// have it: that is said, with the block and its last owner, and the process is aborted, since its data cannot be
// trusted. Knows nothing of the engine's segments but their addresses. Invariants: whoever calls owns the block's
// memory at that moment; memory is written outside the lock. What is in the table of freed memory belongs to nobody, so
// it may be read under the lock.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "block.h"

namespace pinbuddy {

class Guard {
 public:
  // Nobody's bytes behind each block.
  static constexpr std::size_t kTail = 64;

  // The process's guard; null unless BUDDY_GUARD=1. It is never destroyed.
  static Guard* make();

  // `block` was granted for a request of `size` bytes and is about to be handed out.
  void hand_out(const Block& block, std::size_t size);

  // Its user frees it. Streams may still use it.
  void freed(const Block& block);

  // Nobody uses it any more.
  void idle(const Block& block);

  // This memory is about to be unpinned.
  void goes(const void* address, std::size_t bytes);

  // Looks at all that is freed.
  void check_all();

 private:
  struct Owner {
    std::size_t size;
    pid_t thread;
    std::array<char, 16> name;
    // Who freed it; 0 before.
    pid_t freed_by;
  };

  struct Freed {
    std::uintptr_t end;
    Owner owner;
    // Where the block began: parts of it may be in use again.
    std::uintptr_t block;
  };
  using Pieces = std::vector<std::pair<std::uintptr_t, Freed>>;

  // Takes what is freed in a range out of the table.
  Pieces take(std::uintptr_t begin, std::uintptr_t end);
  static void check(const Pieces& pieces);

  std::mutex mutex_;
  std::map<std::uintptr_t, Owner> live_;
  // By address; none overlaps another.
  std::map<std::uintptr_t, Freed> freed_;
};

} // namespace pinbuddy
