// What stream_memory.h declares, but for regions (stream_regions.cpp) and events (stream_events.cpp); nothing before torch 2.11.
#include "../upstream.h"

#if PINBUDDY_TORCH_FROM(11)

#include "stream_memory.h"

#include <algorithm>
#include <map>
#include <utility>

#include "round_up.h"

namespace pinbuddy {
namespace {

// Longer requests are large to PyTorch, as all regions are.
constexpr std::size_t kSmall = std::size_t{1} << 20;
constexpr std::size_t kPage = 4096;

// Blocks are counted in steps of so many bytes, so that one is less than a step longer than its request.
constexpr std::size_t kCounted = 512;

// Requests from here on get a segment of their own from PyTorch, in steps of so many bytes.
constexpr std::size_t kUnsplit = std::size_t{10} << 20;
constexpr std::size_t kStep = std::size_t{2} << 20;

} // namespace

StreamMemory::StreamMemory(const Around& around, c10::cuda::CUDAStream stream, std::uint32_t number)
    : below_(around.below),
      whole_(around.whole),
      history_(around.history),
      span_(around.span),
      events_(around.events),
      moves_(around.moves),
      peaks_(around.peaks),
      passed_(around.passed),
      trace_(around.trace),
      stream_(stream),
      handle_(stream.stream()),
      number_(number),
      plan_(stream_plan(stream.device_index(), number)),
      needed_(plan_->device_bytes()),
      regions_(plan_->regions()) {
  if (regions_.empty()) {
    state_.store(State::kDropped);
  }
  for (std::size_t index = 0; index < regions_.size(); ++index) {
    // As long as the allocator below would have it: then the block there is the region, and no longer.
    const std::size_t bytes = std::max(plan_->region_bytes(index), kSmall + kPage);
    regions_[index].bytes = bytes < kUnsplit ? bytes : (bytes + kStep - 1) / kStep * kStep;
  }
}

StreamMemory::Given StreamMemory::allocate(std::size_t bytes, bool releases) {
  // First, since a region of a plan that is not in force goes with its last block.
  if (C10_UNLIKELY(unsettled_.load(std::memory_order_relaxed))) {
    settle(Settle::kAsk);
  }
  bool in_force = state_.load(std::memory_order_acquire) == State::kReady;
  if (C10_UNLIKELY(!in_force) && !waits()) {
    reserve(releases);
    in_force = state_.load(std::memory_order_acquire) == State::kReady;
  }
  const bool borrows = counts_down(borrows_);
  if (!in_force && !borrows) {
    return {};
  }
  Block block;
  block.requested = bytes;
  const std::size_t rounded = round_up(bytes);
  keep_peaks(rounded + kCounted);
  {
    Lock guard(mutex_);
    const bool has_place =
        (in_force && plan_->request(rounded, block.place)) || (borrows && plan_->borrow(rounded, block.place));
    if (C10_LIKELY(has_place)) {
      return hand_out(block, rounded);
    }
    if (C10_LIKELY(!plan_->take_retirement())) {
      return {};
    }
  }
  give_back(GiveBack::kForGood);
  device_retired(stream_.device_index());
  return {};
}

void StreamMemory::read_peaks() {
  assert_no_lock_held("reading peaks");
  const c10::DeviceIndex device = stream_.device_index();
  const std::int64_t passed = passed_.bytes();
  peaks_.keep(whole_.getDeviceStats(device), passed);
  reset_peaks();
  below_.resetPeakStats(device);
}

StreamMemory::Given StreamMemory::borrow(std::size_t bytes) {
  Block block;
  block.requested = bytes;
  const std::size_t rounded = round_up(bytes);
  keep_peaks(rounded + kCounted);
  Lock guard(mutex_);
  if (!plan_->borrow(rounded, block.place)) {
    return {};
  }
  borrows_.store(requests_of_an_iteration(), std::memory_order_relaxed);
  return hand_out(block, rounded);
}

std::size_t StreamMemory::free(void* address) {
  Block block;
  std::vector<Idle> idle;
  std::size_t length = 0;
  bool waits_for_others = false;
  keep_peaks(0);
  {
    Lock guard(mutex_);
    const auto found = blocks_.find(address);
    TORCH_CHECK(found != blocks_.end(), "invalid device pointer: ", address);
    block = std::move(found->second);
    blocks_.erase(found);
    length = block.place.bytes;
    counted_.freed(length);
    peaks_.high_water().add({-static_cast<std::int64_t>(length), 0, 0});
    if (C10_UNLIKELY(trace_ != nullptr)) {
      trace_->free(block.place.address);
    }
    if (C10_LIKELY(block.uses.empty())) {
      finish(block.place, block.requested);
      if (C10_UNLIKELY(leaves())) {
        idle = take_idle();
      }
    } else {
      plan_->defer(block.place);
      deferred_.push_back(std::move(block));
      unsettled_.store(true, std::memory_order_relaxed);
      waits_for_others = true;
    }
  }
  if (C10_UNLIKELY(waits_for_others)) {
    record();
  }
  give_back(idle);
  return length;
}

// Nobody uses the place any more. Under the lock.
void StreamMemory::finish(const Place& place, std::size_t requested) {
  counted_.over(place.bytes, requested);
  peaks_.high_water().add({0, -static_cast<std::int64_t>(place.bytes), -static_cast<std::int64_t>(requested)});
  if (C10_UNLIKELY(trace_ != nullptr)) {
    trace_->done(place.address);
  }
  if (C10_UNLIKELY(history_.any())) {
    history_.completed({stream_.device_index(), handle_, place.address, requested});
  }
  plan_->release(place);
}

DeviceHistory::Block StreamMemory::block_at(const void* address) {
  Lock guard(mutex_);
  const auto found = blocks_.find(const_cast<void*>(address));
  const std::size_t requested = found == blocks_.end() ? 0 : found->second.requested;
  return {stream_.device_index(), handle_, reinterpret_cast<std::size_t>(address), requested};
}

void StreamMemory::iteration() {
  Lock guard(mutex_);
  plan_->iteration();
}

Counted StreamMemory::counted() {
  Lock guard(mutex_);
  return counted_;
}

void StreamMemory::reset_peaks() {
  Lock guard(mutex_);
  counted_.reset_peaks();
}

void StreamMemory::reset_accumulated() {
  Lock guard(mutex_);
  counted_.reset_accumulated();
}

std::vector<StreamMemory::Shown> StreamMemory::shown() {
  Lock guard(mutex_);
  // The plan knows whole pages only, and slots, which may be longer than what they serve.
  std::map<std::size_t, Shown> known;
  const auto add = [&known](const Place& place, std::size_t requested, bool live) {
    known[place.address] = {place.address, place.bytes, requested, live};
  };
  for (const auto& [address, block] : blocks_) {
    add(block.place, block.requested, /*live=*/true);
  }
  for (const Block& block : deferred_) {
    add(block.place, block.requested, /*live=*/false);
  }
  for (const Pending& pending : pending_) {
    add(pending.place, pending.requested, /*live=*/false);
  }
  for (const Part& part : plan_->parts()) {
    // Another thread is freeing it if it is in none of these.
    known.try_emplace(part.address, Shown{part.address, part.bytes, part.bytes, part.live});
  }
  std::vector<Shown> shown;
  for (const auto& [address, block] : known) {
    shown.push_back(block);
  }
  return shown;
}

StreamCounts StreamMemory::counts() {
  Lock guard(mutex_);
  StreamCounts counts = plan_->counts();
  counts.device = stream_.device_index();
  counts.stream = number_;
  counts.reserved = reserved();
  counts.given_back = given_back_;
  counts.dropped = leaves();
  return counts;
}

} // namespace pinbuddy

#endif
