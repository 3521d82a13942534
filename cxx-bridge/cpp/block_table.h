// The engine's blocks, found by context and by address while they are handed out.
//
// Block objects are reused and never freed, so that an old context never dangles: a lookup tells whether it
// names a block that is handed out now. Knows nothing of events.
#pragma once

#include <c10/util/flat_hash_map.h>

#include <memory>
#include <mutex>
#include <vector>

#include "block.h"

namespace pinbuddy {

class BlockTable {
 public:
  // A block for memory that the engine granted, not handed out yet. The caller owns it until `put`.
  Block* take(const Grant& grant);

  // The same, for a block whose object stays the caller's for good, and that is not found by its address.
  Block* make(const Grant& grant);

  // Called before the memory is released to the engine: from now on another block at that address can be
  // found.
  void put(Block* block);

  // The handed-out block with this context or, failing that, at this address; null if there is none. Neither
  // pointer needs to be ours.
  Block* find(const void* address, const void* context);

  // The block at this address, also one that was freed and is not released yet; null if there is none.
  Block* at(const void* address);

 private:
  std::mutex mutex_;
  ska::flat_hash_map<const void*, Block*> by_address_;
  // Every block object ever made. Does not grow once enough can be reused.
  ska::flat_hash_set<const void*> contexts_;
  std::vector<Block*> spare_;
};

} // namespace pinbuddy
