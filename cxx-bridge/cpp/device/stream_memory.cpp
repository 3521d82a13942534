// What stream_memory.h declares; nothing before torch 2.11.
#include "../upstream.h"

#if PINBUDDY_TORCH_FROM(11)

#include "stream_memory.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <string>
#include <utility>

#include "profiling.h"
#include "region_length.h"
#include "round_up.h"

namespace pinbuddy {
namespace {

// Requests from here on get a segment of their own from PyTorch, in steps of so many bytes.
constexpr std::size_t kUnsplit = std::size_t{10} << 20;
constexpr std::size_t kStep = std::size_t{2} << 20;

} // namespace

StreamMemory::StreamMemory(
    Below& below,
    Below& whole,
    c10::cuda::CUDAStream stream,
    std::uint32_t number,
    DeviceTrace* trace)
    : below_(below),
      whole_(whole),
      stream_(stream),
      number_(number),
      trace_(trace),
      plan_(stream_plan(stream.device_index(), number)),
      regions_(plan_->regions()) {
  if (regions_.empty()) {
    state_.store(State::kDropped);
  }
  for (std::size_t index = 0; index < regions_.size(); ++index) {
    // As long as the allocator below would have it: then the block there is the region, and no longer.
    const std::size_t bytes = plan_->region_bytes(index);
    regions_[index].bytes = bytes < kUnsplit ? bytes : (bytes + kStep - 1) / kStep * kStep;
  }
}

StreamMemory::Given StreamMemory::allocate(std::size_t bytes, bool captured) {
  if (C10_UNLIKELY(state_.load(std::memory_order_acquire) != State::kReady)) {
    reserve();
    if (state_.load(std::memory_order_acquire) != State::kReady) {
      return {};
    }
  }
  if (C10_UNLIKELY(unsettled_.load(std::memory_order_relaxed)) && !captured) {
    settle();
  }
  Block block;
  block.requested = bytes;
  const std::size_t rounded = round_up(bytes);
  Lock guard(mutex_);
  if (!plan_->request(rounded, block.place)) {
    return {};
  }
  const std::size_t length = block.place.bytes;
  auto* address = reinterpret_cast<void*>(block.place.address);
  counted_.blocks.increase(1);
  counted_.bytes.increase(block.place.bytes);
  counted_.requested.increase(bytes);
  counted_.active_blocks.increase(1);
  counted_.active_bytes.increase(block.place.bytes);
  if (C10_UNLIKELY(trace_ != nullptr)) {
    trace_->request(block.place.address, rounded, stream_.stream(), /*planless=*/false);
  }
  blocks_.emplace(address, std::move(block));
  return {address, length};
}

// Takes the regions from the allocator below, so that its limits hold for them.
void StreamMemory::reserve() {
  State cold = State::kCold;
  if (state_.load(std::memory_order_acquire) != cold) {
    return;
  }
  assert_no_lock_held("reserving a region");
  const c10::DeviceIndex device = stream_.device_index();
  // These may throw, and then nobody is reserving.
  c10::cuda::CUDAGuard device_guard(device);
  // Of the whole: to the allocator below, other streams' regions are blocks.
  const auto before = whole_.getDeviceStats(device).allocated_bytes[0].peak;
  if (!state_.compare_exchange_strong(cold, State::kReserving)) {
    return;
  }
  peak_before_.store(std::max(peak_before(), before), std::memory_order_relaxed);
  std::vector<std::pair<std::size_t, void*>> taken;
  const AskingFor region(Asking::kRegion);
  try {
    for (std::size_t index = 0; index < regions_.size(); ++index) {
      // Some may still be there since the cache was emptied.
      if (const Region& region = regions_[index]; region.base.load(std::memory_order_relaxed) == 0) {
        taken.emplace_back(index, below_.raw_alloc_with_stream(region.bytes, stream_.stream()));
      }
    }
  } catch (const c10::Error& error) {
    for (const auto& [index, base] : taken) {
      below_.raw_delete(base);
    }
    state_.store(State::kDropped);
    if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) {
      Lock guard(mutex_);
      ++counted_.refusals;
    }
    device_refused(device, error.what_without_backtrace());
    give_back(/*for_good=*/true);
    return;
  }
  for (const auto& [index, address] : taken) {
    const std::size_t held = region_length(below_, address, regions_[index].bytes);
    regions_[index].held.store(held, std::memory_order_relaxed);
    tell_profiler_of_region(address, -static_cast<std::int64_t>(held));
  }
  {
    Lock guard(mutex_);
    for (const auto& [index, address] : taken) {
      const auto base = reinterpret_cast<std::size_t>(address);
      plan_->reserved(index, base);
      regions_[index].base.store(base, std::memory_order_release);
      counted_.regions.increase(1);
      counted_.reserved.increase(regions_[index].held.load(std::memory_order_relaxed));
      counted_.asked.increase(regions_[index].bytes);
    }
  }
  state_.store(State::kReady, std::memory_order_release);
}

void* StreamMemory::region_of(const void* address) const {
  for (const Region& region : regions_) {
    const auto base = region.base.load(std::memory_order_acquire);
    if (base != 0 && reinterpret_cast<std::size_t>(address) - base < region.bytes) {
      return reinterpret_cast<void*>(base);
    }
  }
  return nullptr;
}

std::size_t StreamMemory::free(void* address, bool captured) {
  Block block;
  std::vector<Idle> idle;
  std::size_t length = 0;
  {
    Lock guard(mutex_);
    const auto found = blocks_.find(address);
    TORCH_CHECK(found != blocks_.end(), "invalid device pointer: ", address);
    block = std::move(found->second);
    blocks_.erase(found);
    length = block.place.bytes;
    counted_.blocks.decrease(1);
    counted_.bytes.decrease(block.place.bytes);
    if (C10_UNLIKELY(trace_ != nullptr)) {
      trace_->free(block.place.address);
    }
    if (C10_LIKELY(block.uses.empty())) {
      finish(block.place, block.requested);
      if (C10_UNLIKELY(state_.load(std::memory_order_relaxed) == State::kDropped)) {
        idle = take_idle();
      }
    } else {
      plan_->defer(block.place);
      unsettled_.store(true, std::memory_order_relaxed);
      if (captured) {
        deferred_.push_back(std::move(block));
        return length;
      }
    }
  }
  if (C10_UNLIKELY(!block.uses.empty())) {
    record(std::move(block));
  }
  give_back(idle);
  return length;
}

// Nobody uses the place any more. Under the lock.
void StreamMemory::finish(const Place& place, std::size_t requested) {
  counted_.requested.decrease(requested);
  counted_.active_blocks.decrease(1);
  counted_.active_bytes.decrease(place.bytes);
  if (C10_UNLIKELY(trace_ != nullptr)) {
    trace_->done(place.address);
  }
  plan_->release(place);
}

// The place of a freed block waits for events on the streams that used it.
void StreamMemory::record(Block block) {
  Pending pending;
  pending.place = block.place;
  pending.requested = block.requested;
  for (const auto& stream : block.uses) {
    pending.events.emplace_back(stream, PooledEvent::record(stream));
  }
  Lock guard(mutex_);
  pending_.push_back(std::move(pending));
  // Since the block was freed, another thread may have settled all there was and found nothing left.
  unsettled_.store(true, std::memory_order_relaxed);
}

void StreamMemory::use(void* address, c10::cuda::CUDAStream stream) {
  if (stream == stream_) {
    return;
  }
  Lock guard(mutex_);
  const auto found = blocks_.find(address);
  TORCH_CHECK(found != blocks_.end(), "invalid device pointer: ", address);
  auto& uses = found->second.uses;
  if (std::find(uses.begin(), uses.end(), stream) == uses.end()) {
    uses.push_back(stream);
  }
}

void StreamMemory::settle() {
  if (!unsettled_.load(std::memory_order_relaxed)) {
    return;
  }
  std::vector<Block> deferred;
  std::vector<Pending> pending;
  {
    Lock guard(mutex_);
    deferred.swap(deferred_);
  }
  for (Block& block : deferred) {
    record(std::move(block));
  }
  {
    Lock guard(mutex_);
    pending.swap(pending_);
  }
  // Events of a stream complete in order: one that is not complete answers for those behind it.
  std::vector<c10::cuda::CUDAStream> busy;
  const auto complete = [&busy](const std::pair<c10::cuda::CUDAStream, PooledEvent>& it) {
    if (std::find(busy.begin(), busy.end(), it.first) != busy.end()) {
      return false;
    }
    if (!it.second.completed()) {
      busy.push_back(it.first);
      return false;
    }
    return true;
  };
  const auto done = std::stable_partition(pending.begin(), pending.end(), [&](const Pending& it) {
    return !std::all_of(it.events.begin(), it.events.end(), complete);
  });
  std::vector<Idle> idle;
  {
    Lock guard(mutex_);
    std::for_each(done, pending.end(), [&](const Pending& it) { finish(it.place, it.requested); });
    pending_.insert(
        pending_.begin(), std::make_move_iterator(pending.begin()), std::make_move_iterator(done));
    unsettled_.store(!pending_.empty() || !deferred_.empty(), std::memory_order_relaxed);
    if (state_.load(std::memory_order_relaxed) == State::kDropped) {
      idle = take_idle();
    }
  }
  give_back(idle);
}

std::vector<StreamMemory::Idle> StreamMemory::take_idle() {
  std::vector<Idle> idle;
  for (const std::size_t index : plan_->take_idle()) {
    const auto base = regions_[index].base.exchange(0);
    const auto held = regions_[index].held.load(std::memory_order_relaxed);
    idle.push_back({reinterpret_cast<void*>(base), held});
    counted_.regions.decrease(1);
    counted_.reserved.decrease(held);
    counted_.asked.decrease(regions_[index].bytes);
  }
  return idle;
}

void StreamMemory::give_back(bool for_good) {
  std::vector<Idle> idle;
  {
    Lock guard(mutex_);
    const State state = state_.load(std::memory_order_relaxed);
    if (state == State::kReserving) {
      return;
    }
    idle = take_idle();
    if (for_good) {
      state_.store(State::kDropped);
    } else if (state == State::kReady && !idle.empty()) {
      state_.store(State::kCold);
    }
  }
  give_back(idle);
}

void StreamMemory::give_back(const std::vector<Idle>& regions) {
  for (const auto& [base, held] : regions) {
    assert_no_lock_held("giving a region back");
    tell_profiler_of_region(base, static_cast<std::int64_t>(held));
    below_.raw_delete(base);
  }
}

// A region is no memory of the program's: what the allocator below says of it to a profiler is made good.
void StreamMemory::tell_profiler_of_region(void* base, std::int64_t bytes) {
  tell_profiler(whole_, base, bytes, stream_.device_index());
}

void StreamMemory::iteration() {
  Lock guard(mutex_);
  plan_->iteration();
}

std::size_t StreamMemory::reserved() const {
  std::size_t bytes = 0;
  for (const Region& region : regions_) {
    bytes += region.base.load(std::memory_order_relaxed) == 0
        ? 0
        : region.held.load(std::memory_order_relaxed);
  }
  return bytes;
}

StreamMemory::Counted StreamMemory::counted() {
  Lock guard(mutex_);
  return counted_;
}

template <class Act>
void StreamMemory::each_count(Act act) {
  for (Stat* stat :
       {&counted_.blocks,
        &counted_.bytes,
        &counted_.requested,
        &counted_.active_blocks,
        &counted_.active_bytes,
        &counted_.regions,
        &counted_.reserved,
        &counted_.asked}) {
    act(*stat);
  }
}

void StreamMemory::reset_peaks() {
  peak_before_.store(0, std::memory_order_relaxed);
  Lock guard(mutex_);
  each_count([](Stat& stat) { stat.reset_peak(); });
}

void StreamMemory::reset_accumulated() {
  Lock guard(mutex_);
  each_count([](Stat& stat) { stat.reset_accumulated(); });
  counted_.refusals = 0;
}

std::vector<StreamMemory::Shown> StreamMemory::shown() {
  Lock guard(mutex_);
  // The plan knows whole pages only, and slots, which may be longer than what they serve.
  ska::flat_hash_map<std::size_t, std::pair<std::size_t, std::size_t>> lengths;
  for (const auto& [address, block] : blocks_) {
    lengths[block.place.address] = {block.place.bytes, block.requested};
  }
  for (const Block& block : deferred_) {
    lengths[block.place.address] = {block.place.bytes, block.requested};
  }
  for (const Pending& pending : pending_) {
    lengths[pending.place.address] = {pending.place.bytes, pending.requested};
  }
  std::vector<Shown> shown;
  for (const Part& part : plan_->parts()) {
    const auto found = lengths.find(part.address);
    // Another thread is freeing it if it is in none of these.
    shown.push_back({
        .address = part.address,
        .bytes = found == lengths.end() ? part.bytes : found->second.first,
        .requested = found == lengths.end() ? part.bytes : found->second.second,
        .live = part.live,
    });
  }
  return shown;
}

StreamCounts StreamMemory::counts() {
  Lock guard(mutex_);
  StreamCounts counts = plan_->counts();
  counts.device = stream_.device_index();
  counts.stream = number_;
  counts.reserved = reserved();
  counts.dropped = state_.load(std::memory_order_relaxed) == State::kDropped;
  return counts;
}

} // namespace pinbuddy

#endif
