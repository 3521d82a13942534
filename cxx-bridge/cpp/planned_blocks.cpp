#include "planned_blocks.h"

namespace pinbuddy {

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
