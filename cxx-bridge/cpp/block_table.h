// The blocks that the engine's memory is granted as, found by context and by address once they are
// handed out.
//
// Block objects are kept and used again, so that a context that was valid once never dangles:
// looking one up tells whether it names a block that is handed out now. Knows nothing of events.
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

  // The memory is about to go back to the engine: from here on the next block at that address can
  // be found.
  void put(Block* block);

  // Where the block that starts at this address was asked for, if that was recorded.
  std::shared_ptr<c10::GatheredContext> context_at(const void* address);

  // The block that is handed out with this context or, failing that, starts at this address; null
  // if there is none. Neither pointer needs to be one of ours.
  Block* find(const void* address, const void* context);

 private:
  std::mutex mutex_;
  ska::flat_hash_map<const void*, Block*> by_address_;
  // Every block object ever made: changes only until there are enough to be used again.
  ska::flat_hash_set<const void*> contexts_;
  std::vector<Block*> spare_;
};

} // namespace pinbuddy
