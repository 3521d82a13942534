#include "planned_blocks.h"

namespace pinbuddy {
namespace {

// Threads that have a number.
std::atomic<std::uint32_t> numbered{0};

} // namespace

std::uint32_t PlannedBlocks::number_thread() {
  number = numbered.fetch_add(1, std::memory_order_relaxed) + 1;
  return number - 1;
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
