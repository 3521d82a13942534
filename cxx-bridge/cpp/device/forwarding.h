// PyTorch's device allocator with every call passed on to the allocator below.
//
// The only place that knows which calls releases have: those that some lack are plain members here, which override where
// there is something to override, and pass on only where there is something to call. tests/python/test_device_forwarding.py
// compares this list with the headers of the torch that is tested. Knows no plan.
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

// `Upstream` is always the same; as a parameter it lets calls that do not exist be left out.
template <class Upstream>
class Forwarding : public Upstream {
 public:
  explicit Forwarding(Upstream* below) : below_(below) {}

  // What every c10 allocator has.
  c10::DataPtr allocate(std::size_t bytes) override {
    return below_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return below_->raw_deleter();
  }
  bool is_simple_data_ptr(const c10::DataPtr& data) const override {
    return below_->is_simple_data_ptr(data);
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    below_->copy_data(to, from, bytes);
  }

  // What every device's allocator has.
  bool initialized() override {
    return below_->initialized();
  }
  void emptyCache(c10::MempoolId_t pool) override {
    below_->emptyCache(pool);
  }
  device_memory::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    return below_->getDeviceStats(device);
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    below_->resetAccumulatedStats(device);
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    below_->resetPeakStats(device);
  }
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
    return below_->getMemoryInfo(device);
  }

  // CUDA's.
  void* raw_alloc(std::size_t bytes) override {
    return below_->raw_alloc(bytes);
  }
  void* raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream) override {
    return below_->raw_alloc_with_stream(bytes, stream);
  }
  void raw_delete(void* address) override {
    below_->raw_delete(address);
  }
  void init(int devices) override {
    below_->init(devices);
  }
  double getMemoryFraction(c10::DeviceIndex device) override {
    return below_->getMemoryFraction(device);
  }
  void setMemoryFraction(double fraction, c10::DeviceIndex device) override {
    below_->setMemoryFraction(fraction, device);
  }
  std::vector<device_memory::StreamSegmentSize> getExpandableSegmentSizes(
      c10::DeviceIndex device) override {
    return below_->getExpandableSegmentSizes(device);
  }
  void enable(bool value) override {
    below_->enable(value);
  }
  bool isEnabled() const override {
    return below_->isEnabled();
  }
  void cacheInfo(c10::DeviceIndex device, std::size_t* largest) override {
    below_->cacheInfo(device, largest);
  }
  void* getBaseAllocation(void* address, std::size_t* bytes) override {
    return below_->getBaseAllocation(address, bytes);
  }
  using Upstream::recordStream;
  void recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) override {
    below_->recordStream(data, stream);
  }
  device_memory::SnapshotInfo snapshot(c10::MempoolId_t pool, bool traces) override {
    return below_->snapshot(pool, traces);
  }
  void beginAllocateToPool(
      c10::DeviceIndex device,
      c10::MempoolId_t pool,
      std::function<bool(cudaStream_t)> filter) override {
    below_->beginAllocateToPool(device, pool, std::move(filter));
  }
  void endAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    below_->endAllocateToPool(device, pool);
  }
  void releasePool(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    below_->releasePool(device, pool);
  }
  int getPoolUseCount(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    return below_->getPoolUseCount(device, pool);
  }
  void createOrIncrefPool(
      c10::DeviceIndex device,
      c10::MempoolId_t pool,
      std::shared_ptr<device_memory::CUDAAllocator> allocator) override {
    below_->createOrIncrefPool(device, pool, std::move(allocator));
  }
  void setUseOnOOM(c10::DeviceIndex device, c10::MempoolId_t pool, bool use) override {
    below_->setUseOnOOM(device, pool, use);
  }
  void setNoSplit(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    below_->setNoSplit(device, pool);
  }
  bool checkPoolLiveAllocations(
      c10::DeviceIndex device,
      c10::MempoolId_t pool,
      const std::unordered_set<void*>& expected) override {
    return below_->checkPoolLiveAllocations(device, pool, expected);
  }
  device_memory::ShareableHandle shareIpcHandle(void* address) override {
    return below_->shareIpcHandle(address);
  }
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override {
    return below_->getIpcDevPtr(std::move(handle));
  }
  bool isHistoryEnabled() override {
    return below_->isHistoryEnabled();
  }
  void recordHistory(
      bool enabled,
      device_memory::CreateContextFn context,
      std::size_t most,
      device_memory::RecordContext when,
      bool clear,
      const std::vector<std::string>& skip) override {
    below_->recordHistory(enabled, context, most, when, clear, skip);
  }
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& data) override {
    below_->recordAnnotation(data);
  }
  void pushCompileContext(std::string& data) override {
    below_->pushCompileContext(data);
  }
  void popCompileContext() override {
    below_->popCompileContext();
  }
  void setUserMetadata(const std::string& data) override {
    below_->setUserMetadata(data);
  }
  std::string getUserMetadata() override {
    return below_->getUserMetadata();
  }
  void attachOutOfMemoryObserver(device_memory::OutOfMemoryObserver observer) override {
    below_->attachOutOfMemoryObserver(std::move(observer));
  }
  void attachAllocatorTraceTracker(device_memory::AllocatorTraceTracker tracker) override {
    below_->attachAllocatorTraceTracker(std::move(tracker));
  }
  void enablePeerAccess(c10::DeviceIndex device, c10::DeviceIndex other) override {
    below_->enablePeerAccess(device, other);
  }
  cudaError_t memcpyAsync(
      void* to,
      int to_device,
      const void* from,
      int from_device,
      std::size_t bytes,
      cudaStream_t stream,
      bool peers) override {
    return below_->memcpyAsync(to, to_device, from, from_device, bytes, stream, peers);
  }
  std::shared_ptr<device_memory::AllocatorState> getCheckpointState(
      c10::DeviceIndex device,
      c10::MempoolId_t pool) override {
    return below_->getCheckpointState(device, pool);
  }
  device_memory::CheckpointDelta setCheckpointPoolState(
      c10::DeviceIndex device,
      std::shared_ptr<device_memory::AllocatorState> state) override {
    return below_->setCheckpointPoolState(device, std::move(state));
  }
  std::string name() override {
    return below_->name();
  }

  // What some releases lack.
  void markCaptureBegin(c10::DeviceIndex device) {
    if constexpr (requires(Upstream* it) { it->markCaptureBegin(device); }) {
      below_->markCaptureBegin(device);
    }
  }
  void markCaptureEnd(c10::DeviceIndex device) {
    if constexpr (requires(Upstream* it) { it->markCaptureEnd(device); }) {
      below_->markCaptureEnd(device);
    }
  }
  std::shared_ptr<c10::GatheredContext> getContextForPointer(const void* address) {
    if constexpr (requires(Upstream* it) { it->getContextForPointer(address); }) {
      return below_->getContextForPointer(address);
    }
    return nullptr;
  }
  void attachOomRejectionObserver(
      std::function<void(int64_t, std::size_t, std::size_t, std::size_t)> observer) {
    if constexpr (requires(Upstream* it) { it->attachOomRejectionObserver(observer); }) {
      below_->attachOomRejectionObserver(std::move(observer));
    }
  }
  c10::DataPtr allocateWithAddress(std::size_t bytes, void* address) {
    if constexpr (requires(Upstream* it) { it->allocateWithAddress(bytes, address); }) {
      return below_->allocateWithAddress(bytes, address);
    }
    return {};
  }
  bool supportsUserMetadata() {
    if constexpr (requires(Upstream* it) { it->supportsUserMetadata(); }) {
      return below_->supportsUserMetadata();
    }
    return false;
  }
  void annotateMemory(const void* address, const std::string& data) {
    if constexpr (requires(Upstream* it) { it->annotateMemory(address, data); }) {
      below_->annotateMemory(address, data);
    }
  }

 protected:
  Upstream* const below_;
};

} // namespace pinbuddy
