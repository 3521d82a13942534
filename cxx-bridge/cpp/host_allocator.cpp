// Puts our allocator in PyTorch's registry when the library is loaded, ahead of the built-in one.
//
// The allocator is leaked: pinned tensors outlive every static object, and CUDA is gone by then.
#include "host_allocator.h"

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <memory>

#include "buddy_allocator.h"
#include "child.h"
#include "device/device_allocator.h"
#include "upstream.h"

namespace pinbuddy {
namespace {

void delete_block(void* context);

using HostAllocator = UpstreamInterface<BuddyAllocator, delete_block>;

// Set once, when the library is loaded, before memory can be requested. Null if the engine is off: then
// nothing here is called. Not a function-local static, whose guard each free would check.
HostAllocator* the_allocator = nullptr;

void delete_block(void* context) {
  the_allocator->free(context);
}

void before_fork() {
  the_allocator->impl_->before_fork();
}

void in_parent() {
  the_allocator->impl_->after_fork(/*in_child=*/false);
  engine_made_child();
}

void in_child() {
  the_allocator->impl_->after_fork(/*in_child=*/true);
  // Not if the parent never used its engine: CUDA may work in that child, and then the engine does, too.
  child.store(engine_enter_child(), std::memory_order_relaxed);
}

[[gnu::constructor]] void register_allocator() {
  if (engine_enabled()) {
    the_allocator = new HostAllocator(std::make_unique<BuddyAllocator>());
    register_host_allocator(the_allocator);
    pthread_atfork(before_fork, in_parent, in_child);
    // After all others, which come first: by then nothing is freed any more.
    std::atexit(engine_record_close);
    // After the next, which comes first: by then nothing is pinned or unpinned any more.
    std::atexit([] { the_allocator->impl_->check_guarded(); });
    std::atexit(engine_close);
    engine_report_settings();
    engine_arm_record();
    install_device_allocator();
  }
}

} // namespace

int32_t device_count() {
  return c10::cuda::device_count();
}

int32_t current_device() {
  try {
    return c10::cuda::current_device();
  } catch (const c10::Error&) {
    return -1;
  }
}

bool shares_host_memory() {
  for (int32_t device = 0; device < device_count(); ++device) {
    for (const auto attribute : {cudaDevAttrIntegrated, cudaDevAttrPageableMemoryAccessUsesHostPageTables}) {
      int value = 0;
      if (cudaDeviceGetAttribute(&value, attribute, device) != cudaSuccess) {
        // No later call is to meet it.
        (void)cudaGetLastError();
      } else if (value != 0) {
        return true;
      }
    }
  }
  return false;
}

bool has_context() {
  try {
    return c10::cuda::getDeviceIndexWithPrimaryContext().has_value();
  } catch (const std::exception&) {
    // The driver is not started yet, or is gone.
    return false;
  }
}

bool something_is_captured() {
  return the_allocator->impl_->captures();
}

bool adopt_context() {
  try {
    const auto device = c10::cuda::getDeviceIndexWithPrimaryContext();
    if (device) {
      c10::cuda::set_device(*device);
    }
    return device.has_value();
  } catch (const std::exception&) {
    return false;
  }
}

// Exit handlers run in the reverse order of their registration. The driver registers its own when it is
// initialised. Ours is registered after that, so that the warm-up stops while the driver still exists.
void initialise(int32_t device) {
  static std::atomic<bool> done{false};
  if (!done.exchange(true)) {
    try {
      initialise_driver(static_cast<c10::DeviceIndex>(device));
    } catch (...) {
      done = false;
      throw;
    }
    std::atexit(engine_close);
  }
}

std::size_t pin_region(std::size_t bytes, int32_t device) {
  initialise(device);
  void* address = the_allocator->impl_->pin_counted(bytes, static_cast<c10::DeviceIndex>(device));
  the_allocator->impl_->segment_came(address, bytes);
  return reinterpret_cast<std::size_t>(address);
}

void unpin_region(std::size_t address, std::size_t bytes) {
  // First, since another region may get this address as soon as this one is unmapped.
  segment_goes(address, bytes);
  the_allocator->impl_->unpin_counted(reinterpret_cast<void*>(address));
  the_allocator->impl_->segment_went();
}

void segment_pinned(std::size_t address, std::size_t bytes, int64_t microseconds) {
  the_allocator->impl_->count_pin(microseconds);
  the_allocator->impl_->segment_came(reinterpret_cast<void*>(address), bytes);
}

void segment_goes(std::size_t address, std::size_t bytes) {
  the_allocator->impl_->segment_goes(reinterpret_cast<void*>(address), bytes);
}

void count_unpin(int64_t microseconds) {
  the_allocator->impl_->count_unpin(microseconds);
  the_allocator->impl_->segment_went();
}

void reap_completed() {
  the_allocator->impl_->reap();
  the_allocator->impl_->flush_any_cached();
}

void reap_behind() {
  if (adopt_context()) {
    c10::cuda::CUDAStreamCaptureModeGuard unseen_by_captures(cudaStreamCaptureModeRelaxed);
    reap_completed();
  }
}

void flush_cached() {
  if (the_allocator != nullptr) {
    the_allocator->impl_->flush_cached();
  }
}

Caches caches() {
  return the_allocator != nullptr ? the_allocator->impl_->caches() : Caches{};
}

void record(bool on) {
  if (the_allocator != nullptr) {
    the_allocator->impl_->record(on);
  }
}

rust::String torch_version() {
  return TORCH_VERSION;
}

void empty_host_cache() {
  the_allocator->empty_cache();
}

} // namespace pinbuddy
