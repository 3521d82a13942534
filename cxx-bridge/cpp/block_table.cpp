#include "block_table.h"

#include "lock.h"

namespace pinbuddy {

Block* BlockTable::take(const Grant& grant) {
  void* address = reinterpret_cast<void*>(grant.address);
  Lock guard(mutex_);
  Block* block = nullptr;
  if (spare_.empty()) {
    block = new Block(grant.bytes, address);
    block->engine_owned = true;
    contexts_.insert(block);
  } else {
    block = spare_.back();
    spare_.pop_back();
    block->size_ = grant.bytes;
    block->ptr_ = address;
  }
  block->grant = grant;
  by_address_[address] = block;
  return block;
}

Block* BlockTable::make(const Grant& grant) {
  auto* block = new Block(grant.bytes, reinterpret_cast<void*>(grant.address));
  block->engine_owned = true;
  block->grant = grant;
  Lock guard(mutex_);
  contexts_.insert(block);
  return block;
}

void BlockTable::put(Block* block) {
  Lock guard(mutex_);
  by_address_.erase(block->ptr_);
  spare_.push_back(block);
}

Block* BlockTable::find(const void* address, const void* context) {
  Lock guard(mutex_);
  if (contexts_.count(context) != 0) {
    // A block of ours, so it may be dereferenced.
    auto* block = static_cast<Block*>(const_cast<void*>(context));
    if (block->handed_out.load(std::memory_order_relaxed)) {
      return block;
    }
  }
  const auto at = by_address_.find(address);
  const bool found = at != by_address_.end() && at->second->handed_out.load(std::memory_order_relaxed);
  return found ? at->second : nullptr;
}

Block* BlockTable::at(const void* address) {
  Lock guard(mutex_);
  const auto found = by_address_.find(address);
  return found != by_address_.end() ? found->second : nullptr;
}

} // namespace pinbuddy
