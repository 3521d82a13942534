// The blocks of a plan's slots, one object a slot.
//
// The engine's side says which slot serves a request; a slot has one user at a time, and so has its block. Objects are
// made when they are first needed and never freed, so that an old context never dangles. Knows nothing of events.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "block.h"
#include "block_table.h"

namespace pinbuddy {

class PlannedBlocks {
 public:
  explicit PlannedBlocks(BlockTable& table)
      : table_(table), count_(engine_slots()), blocks_(std::make_unique<Place[]>(count_)) {}

  // Whether there is a plan.
  bool any() const {
    return count_ != 0;
  }

  // The block that is planned for this thread's request; null if there is none, or it is not free.
  Block* take(std::size_t size) {
    Grant grant;
    if (!engine_request_planned(size, grant)) {
      return nullptr;
    }
    Block* block = blocks_[grant.offset].load(std::memory_order_acquire);
    if (C10_UNLIKELY(block == nullptr || block->grant.address != grant.address)) {
      block = place(grant, block);
    }
    return block;
  }

  // The handed-out block that begins at this address; null if there is none.
  Block* find(const void* address) const {
    Block* block = at(address);
    return block != nullptr && block->handed_out.load(std::memory_order_relaxed) ? block : nullptr;
  }

  // The same, also one that was freed and is not released yet.
  Block* at(const void* address) const {
    std::uint32_t slot = 0;
    if (!any() || !engine_slot_at(reinterpret_cast<std::size_t>(address), slot)) {
      return nullptr;
    }
    return blocks_[slot].load(std::memory_order_acquire);
  }

 private:
  using Place = std::atomic<Block*>;

  // The block of a slot that is used for the first time, or whose region was pinned anew.
  [[gnu::noinline]] Block* place(const Grant& grant, Block* block) {
    if (block == nullptr) {
      block = table_.make(grant);
      block->planned = true;
      blocks_[grant.offset].store(block, std::memory_order_release);
    } else {
      block->grant = grant;
      block->ptr_ = reinterpret_cast<void*>(grant.address);
    }
    return block;
  }

  BlockTable& table_;
  const std::size_t count_;
  const std::unique_ptr<Place[]> blocks_;
};

} // namespace pinbuddy
