// PyTorch's device allocator, of which every call that a plan has nothing to do with is passed on to the allocator below.
//
// The only place that knows which calls releases have: those that some lack are plain members here, which override where
// there is something to override, and pass on only where there is something to call. tests/python/test_device_forwarding.py
// compares what is here, and what classes above override, with the headers of the torch that is tested. Knows no plan.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../upstream.h"

namespace pinbuddy {

namespace device_memory = c10::cuda::CUDACachingAllocator;

// `name` with these parameters calls the same below with these arguments.
#define PASS(name, parameters, arguments, ...) \
  auto name parameters __VA_ARGS__->decltype(std::declval<Upstream&>().name arguments) override { \
    return below_->name arguments; \
  }

// The same of what some releases lack.
#define PASS_IF(result, name, parameters, arguments) \
  result name parameters { \
    if constexpr (requires(Upstream* it) { it->name arguments; }) { \
      return below_->name arguments; \
    } else { \
      return result(); \
    } \
  }

// `Upstream` is always the same; as a parameter it lets calls that do not exist be left out.
template <class Upstream>
class Forwarding : public Upstream {
 public:
  explicit Forwarding(Upstream* below) : below_(below) {}

  using Device = c10::DeviceIndex;
  using Pool = c10::MempoolId_t;

  PASS(is_simple_data_ptr, (const c10::DataPtr& data), (data), const)
  PASS(copy_data, (void* to, const void* from, std::size_t bytes), (to, from, bytes), const)
  PASS(initialized, (), ())
  PASS(getMemoryInfo, (Device device), (device))
  PASS(getMemoryFraction, (Device device), (device))
  PASS(setMemoryFraction, (double fraction, Device device), (fraction, device))
  PASS(getExpandableSegmentSizes, (Device device), (device))
  PASS(enable, (bool value), (value))
  PASS(isEnabled, (), (), const)
  PASS(cacheInfo, (Device device, std::size_t* largest), (device, largest))
  PASS(releasePool, (Device device, Pool pool), (device, pool))
  PASS(getPoolUseCount, (Device device, Pool pool), (device, pool))
  PASS(createOrIncrefPool, (Device device, Pool pool, std::shared_ptr<Upstream> of), (device, pool, std::move(of)))
  PASS(setUseOnOOM, (Device device, Pool pool, bool use), (device, pool, use))
  PASS(setNoSplit, (Device device, Pool pool), (device, pool))
  PASS(checkPoolLiveAllocations, (Device device, Pool pool, const std::unordered_set<void*>& all), (device, pool, all))
  PASS(getIpcDevPtr, (std::string handle), (std::move(handle)))
  PASS(isHistoryEnabled, (), ())
  PASS(recordAnnotation, (const std::vector<std::pair<std::string, std::string>>& data), (data))
  PASS(setUserMetadata, (const std::string& data), (data))
  PASS(getUserMetadata, (), ())
  PASS(attachAllocatorTraceTracker, (device_memory::AllocatorTraceTracker tracker), (std::move(tracker)))
  PASS(enablePeerAccess, (Device device, Device other), (device, other))
  PASS(
      memcpyAsync,
      (void* to, int to_device, const void* from, int from_device, std::size_t bytes, cudaStream_t stream, bool peers),
      (to, to_device, from, from_device, bytes, stream, peers))
  PASS(getCheckpointState, (Device device, Pool pool), (device, pool))
  PASS(name, (), ())

  PASS_IF(void, markCaptureBegin, (Device device), (device))
  PASS_IF(void, markCaptureEnd, (Device device), (device))
  PASS_IF(std::shared_ptr<c10::GatheredContext>, getContextForPointer, (const void* address), (address))
  PASS_IF(void, attachOomRejectionObserver, (device_memory::OutOfMemoryObserver observer), (observer))
  PASS_IF(c10::DataPtr, allocateWithAddress, (std::size_t bytes, void* address), (bytes, address))
  PASS_IF(bool, supportsUserMetadata, (), ())
  PASS_IF(void, annotateMemory, (const void* address, const std::string& data), (address, data))

 protected:
  Upstream* const below_;
};

#undef PASS
#undef PASS_IF

} // namespace pinbuddy
