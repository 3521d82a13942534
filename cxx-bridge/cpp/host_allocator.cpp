// Puts our allocator in PyTorch's registry when the library is loaded, ahead of the built-in one.
//
// The allocator is leaked: pinned tensors outlive every static object, and CUDA is gone by then.
#include "host_allocator.h"

#include <ATen/core/CachingHostAllocator.h>

#include <memory>

#include "buddy_allocator.h"

namespace pinbuddy {
namespace {

// The built-in allocator registers with priority 0, before or after us.
constexpr uint8_t kPriority = 1;

void delete_block(void* context);

struct HostAllocator final : at::CachingHostAllocatorInterface<BuddyAllocator, delete_block> {
  using at::CachingHostAllocatorInterface<BuddyAllocator, delete_block>::
      CachingHostAllocatorInterface;
};

// Set once, when the library is loaded, before anybody can ask for memory; with the engine off it
// stays null, and nothing leads here. No function-local static: each free would ask its guard.
HostAllocator* the_allocator = nullptr;

void delete_block(void* context) {
  the_allocator->free(context);
}

[[gnu::constructor]] void register_allocator() {
  if (engine_enabled()) {
    the_allocator = new HostAllocator(std::make_unique<BuddyAllocator>());
    at::setHostAllocator(c10::DeviceType::CUDA, the_allocator, kPriority);
  }
}

} // namespace

std::size_t pin_region(std::size_t bytes) {
  return reinterpret_cast<std::size_t>(the_allocator->impl_->pin_counted(bytes));
}

void unpin_region(std::size_t address) {
  the_allocator->impl_->unpin_counted(reinterpret_cast<void*>(address));
}

} // namespace pinbuddy
