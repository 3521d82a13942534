#include "host_memory.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "host_allocator.h"
#include "lock.h"
#include "settings.h"

namespace pinbuddy {
namespace {

constexpr std::size_t kPage = 4096;

// Has the kernel map every page of [begin, end) by writing to it once.
void touch(volatile char* begin, volatile char* end) {
  for (volatile char* page = begin; page < end; page += kPage) {
    *page = 0;
  }
}

// The kernel maps pages several times faster from several threads, and registering mapped pages holds the
// driver's lock for less time.
void touch_in_parallel(char* memory, std::size_t bytes, std::size_t threads) {
  const std::size_t pages = (bytes + kPage - 1) / kPage;
  threads = std::clamp<std::size_t>(threads, 1, pages);
  const auto edge = [&](std::size_t part) {
    return memory + std::min(pages * part / threads * kPage, bytes);
  };
  std::vector<std::thread> helpers;
  std::size_t part = 1;
  try {
    for (; part < threads; ++part) {
      helpers.emplace_back(touch, edge(part), edge(part + 1));
    }
  } catch (const std::system_error&) {
    // No more threads can be started: this one does the rest.
  }
  touch(edge(0), edge(1));
  touch(edge(part), edge(threads));
  for (auto& helper : helpers) {
    helper.join();
  }
}

struct Free {
  void operator()(void* memory) const {
    std::free(memory);
  }
};

// Below so many bytes a page more would be felt: such memory is registered at its beginning, as by stock.
constexpr std::size_t kLeast = 1 << 20;

PinnedRegion pin_by_register(std::size_t asked) {
  const std::size_t lead = asked < kLeast ? 0 : kPage;
  const std::size_t bytes = asked + lead;
  std::unique_ptr<void, Free> memory(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage));
  TORCH_CHECK(memory, "Not enough host memory for ", asked, " bytes to register with CUDA");
  touch_in_parallel(
      static_cast<char*>(memory.get()), bytes, settings::pinned_num_register_threads());
  C10_CUDA_CHECK(cudaHostRegister(memory.get(), bytes, cudaHostRegisterDefault));
  return {static_cast<char*>(memory.release()) + lead, PinnedBy::HostRegister, lead};
}

// Whether it was registered: libraries unregister what is not theirs.
bool unregister_if_registered(void* address) {
  const cudaError_t outcome = cudaHostUnregister(address);
  if (outcome == cudaErrorHostMemoryNotRegistered) {
    // No later call is to meet it.
    (void)cudaGetLastError();
    return false;
  }
  C10_CUDA_CHECK(outcome);
  return true;
}

// Makes a device current that the process already uses or, if it uses none yet, `fallback`.
//
// With unified addressing pinned memory is usable from every device, whichever context pins it, and any
// context can unpin it. So any existing context serves, and none is created on an unused device; a thread
// that never chose a device would otherwise create one on device 0. What is done meanwhile ends no capture.
class UsedDevice {
 public:
  explicit UsedDevice(c10::DeviceIndex fallback) {
    if (const auto device = c10::cuda::getDeviceIndexWithPrimaryContext()) {
      guard_.set_index(*device);
    } else if (fallback >= 0) {
      guard_.set_index(fallback);
    }
  }

 private:
  c10::cuda::OptionalCUDAGuard guard_;
  c10::cuda::CUDAStreamCaptureModeGuard unseen_by_captures_{cudaStreamCaptureModeRelaxed};
};

} // namespace

PinnedRegion pin(std::size_t bytes, c10::DeviceIndex fallback) {
  assert_no_lock_held("pinning");
  const UsedDevice used(fallback);
  if (settings::pinned_use_cuda_host_register()) {
    return pin_by_register(bytes);
  }
  void* address = nullptr;
  C10_CUDA_CHECK(cudaHostAlloc(&address, bytes, cudaHostAllocDefault));
  return {address, PinnedBy::HostAlloc};
}

void initialise_driver(c10::DeviceIndex fallback) {
  const UsedDevice used(fallback);
  // Frees nothing: the runtime's way to create a context.
  C10_CUDA_CHECK(cudaFree(nullptr));
}

void unpin(const PinnedRegion& region) {
  assert_no_lock_held("unpinning");
  const UsedDevice used(-1);
  if (region.by == PinnedBy::HostRegister) {
    void* begin = static_cast<char*>(region.address) - region.lead;
    unregister_if_registered(begin);
    std::free(begin);
  } else {
    C10_CUDA_CHECK(cudaFreeHost(region.address));
  }
}

void register_mapped(std::size_t address, std::size_t bytes, bool read_only, int32_t device) {
  assert_no_lock_held("registering");
  const UsedDevice used(static_cast<c10::DeviceIndex>(device));
  const unsigned flags = cudaHostRegisterPortable | (read_only ? cudaHostRegisterReadOnly : 0);
  C10_CUDA_CHECK(cudaHostRegister(reinterpret_cast<void*>(address), bytes, flags));
}

void check_mapped(std::size_t address) {
  const UsedDevice used(-1);
  void* on_device = nullptr;
  C10_CUDA_CHECK(cudaHostGetDevicePointer(&on_device, reinterpret_cast<void*>(address), 0));
  TORCH_CHECK(
      reinterpret_cast<std::size_t>(on_device) == address, "the device sees registered memory at an address of its own");
}

bool unregister_mapped(std::size_t address) {
  assert_no_lock_held("unregistering");
  const UsedDevice used(-1);
  return unregister_if_registered(reinterpret_cast<void*>(address));
}

rust::String pci_address(int32_t device) {
  // As long as in the runtime's examples.
  char text[32] = {};
  C10_CUDA_CHECK(cudaDeviceGetPCIBusId(text, sizeof(text), device));
  return text;
}

} // namespace pinbuddy
