#include "planned_blocks.h"

namespace pinbuddy {

// Gives the thread's lane back when the thread ends, before its number.
struct PlannedBlocks::Owner {
  ~Owner() {
    if (own < ThreadNumber::kMost) {
      engine_thread_ended(own);
    }
    // What other destructors of this thread ask for has no lane.
    number = ThreadNumber::kMost + 1;
  }

  std::uint32_t own = ThreadNumber::kMost;
};

std::uint32_t PlannedBlocks::number_thread() {
  // First, so that it goes last.
  const std::uint32_t own = ThreadNumber::own();
  static thread_local Owner owner;
  owner.own = own;
  number = own + 1;
  return own;
}

Block* PlannedBlocks::place(const Grant& grant, Block* block) {
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

} // namespace pinbuddy
