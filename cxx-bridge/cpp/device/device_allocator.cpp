#include "device_allocator.h"

#include "../upstream.h"
#include "pinbuddy-bridge/src/lib.rs.h"

#if PINBUDDY_TORCH_FROM(11)

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "device_reports.h"
#include "failures.h"
#include "forwarding.h"
#include "give_way.h"
#include "planning.h"
#include "round_up.h"

namespace pinbuddy {
namespace {

using device_memory::CUDAAllocator;

void delete_device_memory(void* address);

class DeviceAllocator;

// Leaked: tensors outlive static objects.
DeviceAllocator* the_device_allocator = nullptr;

class DeviceAllocator final : public Planning {
 public:
  DeviceAllocator(CUDAAllocator* below, bool planned, bool notes)
      : Planning(below, planned), notes_(notes), deleter_below_(below->raw_deleter()) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    if (void* address = take(bytes)) {
      return planned(address);
    }
    c10::DataPtr data =
        or_without_plan(bytes, [&] { return below_->allocate(bytes); }, [&] { return planned(borrow(bytes)); });
    (void)data.compare_exchange_deleter(deleter_below_, delete_device_memory);
    return data;
  }

  void* raw_alloc(std::size_t bytes) override {
    if (void* address = take(bytes)) {
      return address;
    }
    return or_without_plan(bytes, [&] { return below_->raw_alloc(bytes); }, [&] { return borrow(bytes); });
  }

  // A stream that is not the current one: of a library that manages its memory itself.
  void* raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream) override {
    const Setting beside(asking, Asking::kBeside);
    return or_without_plan(
        bytes, [&] { return below_->raw_alloc_with_stream(bytes, stream); }, [] { return static_cast<void*>(nullptr); });
  }

  c10::DataPtr allocateWithAddress(std::size_t bytes, void* address) {
    const Setting beside(asking, Asking::kBeside);
    c10::DataPtr data = or_without_plan(
        bytes, [&] { return Forwarding::allocateWithAddress(bytes, address); }, [] { return c10::DataPtr(); });
    (void)data.compare_exchange_deleter(deleter_below_, delete_device_memory);
    return data;
  }

  c10::DeleterFnPtr raw_deleter() const override {
    // Uncached memory is freed by another function.
    return below_->raw_deleter() == deleter_below_ ? delete_device_memory : below_->raw_deleter();
  }

  void raw_delete(void* address) override {
    StreamMemory* owner = streams_.owner_of(address);
    if (C10_LIKELY(owner == nullptr)) {
      below_->raw_delete(address);
      return;
    }
    free_planned(*owner, address);
  }

  // What `delete_device_memory` does: caching may have been switched off since, which does not make cached memory another's.
  void delete_cached(void* address) {
    if (StreamMemory* owner = streams_.owner_of(address); C10_UNLIKELY(owner != nullptr)) {
      free_planned(*owner, address);
    } else {
      deleter_below_(address);
    }
  }

  void recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) override {
    if (C10_UNLIKELY(notes_)) {
      const auto at = reinterpret_cast<std::size_t>(data.get());
      device_uses(data.device().index(), at, reinterpret_cast<std::size_t>(stream.stream()));
    }
    if (data.get_deleter() != delete_device_memory) {
      below_->recordStream(data, stream);
    } else if (StreamMemory* owner = streams_.owner_of(data.get_context())) {
      owner->use(data.get_context(), stream);
    } else {
      // The allocator below knows its own memory by its deleter.
      c10::DataPtr alias(data.get(), data.get_context(), deleter_below_, data.device());
      const auto released = c10::make_scope_exit([&alias] { alias.release_context(); });
      below_->recordStream(alias, stream);
    }
  }
  using CUDAAllocator::recordStream;

  void init(int devices) override {
    below_->init(devices);
    begin(devices);
  }

  // The allocator below is initialised.
  void begin(int devices) {
    streams_.begin(devices);
    if (watches_.exchange(true)) {
      return;
    }
    device_begins();
    if (planned_) {
      below_->attachOutOfMemoryObserver(Failures::count);
    }
    if (notes_) {
      below_->attachAllocatorTraceTracker(note);
    }
  }

  bool has_begun() const {
    return streams_.devices() > 0;
  }

  device_memory::CheckpointDelta setCheckpointPoolState(
      c10::DeviceIndex device,
      std::shared_ptr<device_memory::AllocatorState> state) override {
    auto delta = below_->setCheckpointPoolState(device, std::move(state));
    // Nobody knows how much.
    device_passes(SIZE_MAX);
    for (c10::DataPtr& data : delta.dataptrs_allocd) {
      (void)data.compare_exchange_deleter(deleter_below_, delete_device_memory);
    }
    return delta;
  }

  void emptyCache(c10::MempoolId_t pool) override {
    if (pool == c10::MempoolId_t{0, 0} && captures_.releases()) {
      streams_.each([](StreamMemory& it) {
        it.settle(StreamMemory::Settle::kWait);
        it.give_back(GiveBack::Cleared);
      });
    }
    below_->emptyCache(pool);
    if (pool == c10::MempoolId_t{0, 0}) {
      device_emptied();
    }
  }

  void* getBaseAllocation(void* address, std::size_t* bytes) override {
    return below_->getBaseAllocation(region_of(address), bytes);
  }

  device_memory::ShareableHandle shareIpcHandle(void* address) override {
    void* region = region_of(address);
    auto handle = below_->shareIpcHandle(region);
    handle.offset += static_cast<char*>(address) - static_cast<char*>(region);
    return handle;
  }

  device_memory::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    auto stats = below_->getDeviceStats(device);
    add_planned(stats, device_counted(device));
    streams_[device].peaks().add_to(stats);
    Failures::forgive(stats, device_tally(device).forgiven());
    return stats;
  }

  void resetPeakStats(c10::DeviceIndex device) override {
    if (planned_) {
      streams_[device].peaks().keep(getDeviceStats(device), device_passed(), device_tally(device));
    }
    below_->resetPeakStats(device);
    streams_[device].peaks().reset();
    device_reset_peaks(device);
  }

  void resetAccumulatedStats(c10::DeviceIndex device) override {
    below_->resetAccumulatedStats(device);
    device_reset_accumulated(device);
  }

  void attachOutOfMemoryObserver(device_memory::OutOfMemoryObserver observer) override {
    below_->attachOutOfMemoryObserver(planned_ ? Failures::watched(std::move(observer)) : std::move(observer));
  }

  device_memory::SnapshotInfo snapshot(c10::MempoolId_t pool, bool traces) override {
    auto info = below_->snapshot(pool, traces);
    streams_.each([&](StreamMemory& it) { show_planned(info, it, history_); });
    if (traces && pool == c10::MempoolId_t{0, 0}) {
      history_.add_to(info);
    }
    return info;
  }

  std::shared_ptr<c10::GatheredContext> getContextForPointer(const void* address) {
    return streams_.owner_of(address) == nullptr ? Forwarding::getContextForPointer(address)
                                        : history_.context_of(reinterpret_cast<std::size_t>(address));
  }

  void annotateMemory(const void* address, const std::string& data) {
    if (StreamMemory* owner = streams_.owner_of(address)) {
      if (const auto block = owner->block_at(address); block.requested > 0) {
        history_.annotated(block, data);
        return;
      }
    }
    Forwarding::annotateMemory(address, data);
  }

 private:
  // No memory if it is null.
  static c10::DataPtr planned(void* address) {
    return {address, address, delete_device_memory, {c10::kCUDA, c10::cuda::current_device()}};
  }

  // What `allocate` returns; where memory is short, plans give way, and `borrow` finds what is idle.
  template <class Allocate, class Borrow>
  std::invoke_result_t<Allocate> or_without_plan(std::size_t bytes, Allocate allocate, Borrow borrow) {
    // Under no lock: what the recording could not do under that of the allocator below.
    if (C10_UNLIKELY(is_record_due_.load(std::memory_order_relaxed)) && is_record_due_.exchange(false)) {
      device_record_catch_up();
    }
    std::uint64_t moves = 0;
    if (planned_) {
      moves = device_moves();
      device_passes(bytes);
    }
    try {
      return allocate();
    } catch (c10::OutOfMemoryError& error) {
      if (!may_try_again(error, bytes, moves)) {
        throw;
      }
    }
    return as_plans_give_way(
        streams_[c10::cuda::current_device()], moves, captures_.releases(), bytes, allocate, borrow);
  }

  // Whether anything gives way to a request that has failed; else the failure is the program's. There were so many moves before.
  [[gnu::noinline]] bool may_try_again(c10::OutOfMemoryError& error, std::size_t bytes, std::uint64_t moves) {
    const c10::DeviceIndex device = c10::cuda::current_device();
    const bool may = may_give_way(device, moves);
    if (may && !exceeds(device, bytes)) {
      return true;
    }
    Failures::tell();
    if (may) {
      tell_idle(error, device);
    }
    return false;
  }

  // Whether the device has no such memory, or may not have: then nothing has to give way.
  bool exceeds(c10::DeviceIndex device, std::size_t bytes) {
    const auto total = static_cast<double>(below_->getMemoryInfo(device).second);
    return static_cast<double>(bytes) > total * below_->getMemoryFraction(device);
  }

  // Whether there is anything to give back for a request of this thread on the device, or another thread has given back some since
  // there were so many moves.
  bool may_give_way(c10::DeviceIndex device, std::uint64_t moves) {
    // For a request in a capture, the allocator below gives back nothing that it has: there the plan would go for nothing.
    if (captures_.any() && c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None) {
      return false;
    }
    return device_reserved(device) || device_moved_since(moves);
  }

  void* region_of(void* address) {
    StreamMemory* owner = streams_.owner_of(address);
    return owner == nullptr ? address : owner->region_of(address);
  }

  // What the allocator below says that it does, passed on to traces, and to the recording that becomes a plan. Under its lock: nothing
  // here calls it, Python or the planner.
  static void note(const device_memory::TraceEntry& entry) {
    using Entry = device_memory::TraceEntry;
    static_assert(static_cast<int>(Entry::ALLOC) == static_cast<int>(Noted::Allocated));
    static_assert(static_cast<int>(Entry::FREE_COMPLETED) == static_cast<int>(Noted::Over));
    static_assert(static_cast<int>(Entry::SEGMENT_UNMAP) == static_cast<int>(Noted::Unmapped));
    static_assert(static_cast<int>(Entry::OOM) == static_cast<int>(Noted::Failed));
    const bool is_due = device_note({
        .what = static_cast<Noted>(entry.action_),
        .device = entry.device_,
        .stream = reinterpret_cast<std::size_t>(entry.stream_),
        .address = entry.addr_,
        .bytes = entry.size_,
        .rounded = entry.action_ == Entry::ALLOC ? round_up(entry.size_) : 0,
        .is_ordinary = entry.mempool_ == c10::MempoolId_t{0, 0} && asking == Asking::kOrdinary,
        .is_region = asking == Asking::kRegion,
    });
    if (is_due) {
      the_device_allocator->is_record_due_.store(true, std::memory_order_relaxed);
    }
  }

  // Whether the run is traced or recorded.
  const bool notes_;
  const c10::DeleterFnPtr deleter_below_;
  // Whether the allocator below tells this one of what it does.
  std::atomic<bool> watches_{false};
  // The recording has something to do. Two threads may do it, or the next request.
  std::atomic<bool> is_record_due_{false};
};

// c10's registry is another way to the allocator: of torch.accelerator's functions, and of libraries.
void register_beside(const CUDAAllocator* below) {
  // A program's own allocator stays.
  if (c10::GetAllocator(c10::kCUDA) != below) {
    return;
  }
  // With the built-in allocator's priority, which is 0 in some releases and 1 in others: a lower one has no effect, and with a
  // higher one a program could not set its own.
  for (int priority = 0; priority <= UINT8_MAX && c10::GetAllocator(c10::kCUDA) == below; ++priority) {
    c10::SetAllocator(c10::kCUDA, the_device_allocator, static_cast<std::uint8_t>(priority));
  }
}

void delete_device_memory(void* address) {
  the_device_allocator->delete_cached(address);
}

} // namespace

void install_device_allocator() {
  const bool planned = device_planned();
  const bool notes = device_traces() || device_records();
  if (the_device_allocator != nullptr || (!planned && !notes)) {
    return;
  }
  CUDAAllocator* below = device_memory::allocator.load();
  if (below == nullptr || below->name() != "native") {
    device_absent(below == nullptr ? "there is none" : below->name());
    return;
  }
  if (std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != nullptr) {
    // Whoever sets it wants each block to be CUDA's own, so that tools see where one ends.
    device_absent("PYTORCH_NO_CUDA_MEMORY_CACHING is set");
    return;
  }
  the_device_allocator = new DeviceAllocator(below, planned, notes);
  // A plug-in may be loaded late.
  if (below->initialized()) {
    the_device_allocator->begin(c10::cuda::device_count());
  }
  device_memory::allocator.store(the_device_allocator);
  register_beside(below);
  std::atexit(device_record_close);
}

bool device_initialised() {
  CUDAAllocator* below = device_memory::allocator.load();
  return below != nullptr && below->initialized();
}

bool device_begun() {
  return the_device_allocator != nullptr && the_device_allocator->has_begun();
}

} // namespace pinbuddy

#else

namespace pinbuddy {

void install_device_allocator() {
  if (device_planned() || device_records() || device_traces()) {
    device_absent("this release of torch is older than 2.11");
  }
}

bool device_initialised() {
  return false;
}

bool device_begun() {
  return false;
}

} // namespace pinbuddy

#endif
