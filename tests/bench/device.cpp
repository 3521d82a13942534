#include "device.h"

#include <ATen/Context.h>
#include <dlfcn.h>

#include <atomic>
#include <stdexcept>
#include <utility>

namespace bench {
namespace {

// `c10::cuda::CUDACachingAllocator::allocator`, which tensors ask; its header needs CUDA's. An allocator of CUDA's begins with
// its base.
c10::Allocator* ready() {
  at::globalContext().lazyInitDevice(c10::kCUDA);
  void* current = dlsym(RTLD_DEFAULT, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
  if (!current) {
    throw std::runtime_error("libc10_cuda.so has no current allocator");
  }
  return static_cast<std::atomic<c10::Allocator*>*>(current)->load();
}

} // namespace

DeviceLoop::DeviceLoop(Requests requests)
    : allocator_(ready()), requests_(std::move(requests)), live_(requests_.window) {}

void DeviceLoop::run(long pairs) {
  for (long i = 0; i < pairs; ++i) {
    c10::DataPtr& place = live_[next_ % live_.size()];
    place.clear();
    place = allocator_->allocate(requests_.sizes[next_ % requests_.sizes.size()]);
    ++next_;
  }
}

} // namespace bench
