// What stream_memory.h declares: blocks, events that their places wait for, and regions; nothing before torch 2.11.
//
// Rust says when regions are taken and given back (src/device/stream/regions.rs). Invariant: an error of CUDA's is thrown, and loses
// no block: its events are recorded, or asked for, again.
#include "../upstream.h"

#if PINBUDDY_TORCH_FROM(11)

#include "stream_memory.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/ScopeExit.h>

#include <vector>

#include "../pending_blocks.h"
#include "failures.h"
#include "profiling.h"
#include "round_up.h"

namespace pinbuddy {
namespace {

// The stream that `name_of` names.
c10::cuda::CUDAStream stream_named(std::uint64_t name) {
  return c10::cuda::CUDAStream::unpack3(
      static_cast<std::int64_t>(name) >> 8, static_cast<c10::DeviceIndex>(name), c10::DeviceType::CUDA);
}

// Whether the allocator below has a segment of exactly this length here: to ask for that takes no list of all its blocks. It throws
// for expandable segments.
bool is_segment(c10::cuda::CUDACachingAllocator::CUDAAllocator& below, void* address, std::size_t bytes) {
  if (c10::CachingAllocator::AcceleratorAllocatorConfig::use_expandable_segments()) {
    return false;
  }
  try {
    std::size_t found = 0;
    return below.getBaseAllocation(address, &found) == address && found == bytes;
  } catch (const c10::Error&) {
    return false;
  }
}

// How long the block of the allocator below is that begins at `address`; `asked` if there is none. Its settings may have rounded
// it up, and what is left of what it had cached stays with the block where that is little. Not under a lock.
std::size_t region_length(c10::cuda::CUDACachingAllocator::CUDAAllocator& below, void* address, std::size_t asked) {
  if (is_segment(below, address, asked)) {
    return asked;
  }
  const auto base = reinterpret_cast<std::size_t>(address);
  for (const auto& segment : below.snapshot({0, 0}, /*include_traces=*/false).segments) {
    std::size_t at = segment.address;
    for (const auto& block : segment.blocks) {
      if (at == base) {
        return block.size;
      }
      at += block.size;
    }
  }
  return asked;
}

} // namespace

StreamMemory::StreamMemory(const Around& around, Peaks& peaks, c10::cuda::CUDAStream stream, std::uint32_t number)
    : around_(around),
      peaks_(peaks),
      tally_(device_tally(stream.device_index())),
      stream_(stream),
      handle_(stream.stream()),
      plan_(stream_plan(stream.device_index(), number, reinterpret_cast<std::size_t>(handle_))),
      regions_(plan_.regions()) {
  std::size_t longer = 0;
  for (std::size_t index = 0; index < regions_.size(); ++index) {
    const std::size_t bytes = plan_.region_bytes(index);
    regions_[index].bytes = bytes;
    longer += round_up(bytes) - bytes;
  }
  if (plan_.too_much_longer(stream.device_index(), longer)) {
    drop();
  }
}

// Each turn does what comes before the next: Rust says what.
Place StreamMemory::ask(std::size_t bytes, bool borrows, bool releases) {
  Ask request{bytes, round_up(bytes), oversize_from(), borrows, /*needs=*/-1, Step::Begin};
  Place place{};
  for (;;) {
    request.after = plan_.ask(request, place);
    switch (request.after) {
      case Step::Served:
        return place;
      case Step::Settle:
        settle(Settle::kAsk);
        break;
      case Step::Reserve:
        reserve(releases);
        break;
      case Step::Peaks:
        read_peaks();
        break;
      case Step::Retire:
        drop();
        device_retired(stream_.device_index());
        return {};
      default:
        return {};
    }
  }
}

void StreamMemory::read_peaks() {
  assert_no_lock_held("reading peaks");
  const c10::DeviceIndex device = stream_.device_index();
  const std::int64_t passed = device_passed();
  peaks_.keep(around_.whole.getDeviceStats(device), passed, tally_);
  plan_.reset_peaks();
  around_.below.resetPeakStats(device);
}

std::size_t StreamMemory::free(void* address) {
  const auto at = reinterpret_cast<std::size_t>(address);
  keep_peaks();
  if (C10_UNLIKELY(around_.history.any())) {
    note_completed(at, plan_.completes(at));
  }
  const FreedBlock freed = plan_.free_block(at);
  TORCH_CHECK(freed.bytes > 0, "invalid device pointer: ", address);
  if (C10_UNLIKELY(freed.waits)) {
    record();
  }
  if (C10_UNLIKELY(freed.is_last)) {
    give_back(plan_.take_dropped());
  }
  return freed.bytes;
}

// Before its place may be handed out again; nothing if `requested` is 0.
void StreamMemory::note_completed(std::size_t address, std::size_t requested) {
  if (around_.history.any() && requested > 0) {
    around_.history.completed({stream_.device_index(), handle_, address, requested});
  }
}

DeviceHistory::Block StreamMemory::block_at(const void* address) {
  const auto at = reinterpret_cast<std::size_t>(address);
  return {stream_.device_index(), handle_, at, plan_.requested(at)};
}

void StreamMemory::use(void* address, c10::cuda::CUDAStream stream) {
  if (stream != stream_) {
    const bool is_known = plan_.uses(reinterpret_cast<std::size_t>(address), name_of(stream));
    TORCH_CHECK(is_known, "invalid device pointer: ", address);
  }
}

// The places of freed blocks wait for events on the streams that used them; during a capture, for its end first.
void StreamMemory::record() {
  const std::lock_guard turn(recording_);
  const EventGate::Pass pass(around_.events);
  if (!pass) {
    return;
  }
  std::size_t address = 0;
  rust::Vec<std::uint64_t> streams;
  while (plan_.next_to_record(address, streams)) {
    std::vector<PooledEvent> events;
    for (const std::uint64_t name : streams) {
      events.push_back(PooledEvent::record(stream_named(name)));
    }
    std::vector<std::size_t> numbers;
    for (PooledEvent& event : events) {
      numbers.push_back(event.release());
    }
    plan_.recorded(address, {numbers.data(), numbers.size()});
  }
}

void StreamMemory::settle(Settle how) {
  // Another thread may have all there is in hand. Who only asks comes back later; who is short of memory would find nothing, and
  // give up the plan or the request.
  std::unique_lock turn(settling_, std::defer_lock);
  keep_peaks();
  if (how == Settle::kWait) {
    turn.lock();
  } else if (!turn.try_lock()) {
    return;
  }
  record();
  settle_all(how);
  const auto idle = plan_.take_dropped();
  // The allocator below may wait for Python's lock.
  turn.unlock();
  give_back(idle);
}

// Events of a stream complete in order: one that is not complete answers for those behind it.
void StreamMemory::settle_all(Settle how) {
  const EventGate::Pass pass(around_.events);
  if (!pass) {
    return;
  }
  const PendingQueues& queues = plan_.pending();
  const auto is_over = [how](const PooledEvent& event) {
    if (how == Settle::kWait) {
      event.wait();
    }
    return how == Settle::kWait || event.completed();
  };
  const auto ended = [&queues](std::uint64_t stream, bool over) { queues.end(stream, over); };
  ask_pending(queues, PendingBlocks::kAll, /*keeps=*/true, is_over, ended, [this](std::size_t block) {
    if (const std::size_t requested = plan_.event_over(block); requested > 0) {
      note_completed(block, requested);
      plan_.done(block);
    }
  });
}

// Takes the regions that are wanted from the allocator below, so that its limits hold for them.
void StreamMemory::reserve(bool releases) {
  assert_no_lock_held("reserving a region");
  const c10::DeviceIndex device = stream_.device_index();
  // These may throw, and then nobody is reserving.
  c10::cuda::CUDAGuard device_guard(device);
  read_peaks();
  if (!plan_.begin_reserve()) {
    return;
  }
  const auto moved = c10::make_scope_exit([this, device] {
    // Those of the allocator below have the regions in them from now on.
    around_.below.resetPeakStats(device);
    device_moved();
  });
  // By the time they are given back, caching may be switched off, and the allocator below would give them to CUDA.
  delete_below_.store(around_.below.raw_deleter(), std::memory_order_relaxed);
  const Setting region(asking, Asking::kRegion);
  try {
    for (std::size_t index = 0; index < regions_.size(); ++index) {
      if (plan_.lacks(index)) {
        take_region(index);
      }
    }
  } catch (const c10::OutOfMemoryError& error) {
    tally_.forgive(Failures::counted(releases));
    plan_.region_refused(device, error.what_without_backtrace());
    give_back(plan_.end_reserve(/*all=*/false));
    return;
  } catch (...) {
    // The program's, of a call before: CUDA tells of it with the next one. The next request tries again.
    give_back(plan_.end_reserve(/*all=*/false));
    throw;
  }
  give_back(plan_.end_reserve(/*all=*/true));
}

void StreamMemory::take_region(std::size_t index) {
  Region& region = regions_[index];
  auto since = c10::getApproximateTime();
  void* address = around_.below.raw_alloc_with_stream(region.bytes, handle_);
  const auto base = reinterpret_cast<std::size_t>(address);
  around_.history.asked_for_region(since, base, region.bytes);
  since = c10::getApproximateTime();
  const std::size_t held = region_length(around_.below, address, region.bytes);
  around_.history.asked_for_region(since, 0, 0);
  // A region is no memory of the program's: what the allocator below says of it to a profiler or a tracer is made good.
  tell_of(around_.whole, address, -static_cast<std::int64_t>(held), stream_.device_index());
  around_.span.widen(base, region.bytes);
  region.base.store(base, std::memory_order_release);
  plan_.reserved(index, base, held, held >= oversize_from());
}

bool StreamMemory::give_back(GiveBack why) {
  const auto idle = plan_.give_back(why);
  give_back(idle);
  return !idle.empty();
}

void StreamMemory::give_back(const rust::Vec<IdleRegion>& regions) {
  if (regions.empty()) {
    return;
  }
  const auto moved = c10::make_scope_exit([] { device_moved(); });
  // As they are with the regions; from then on without them.
  const c10::DeviceIndex device = stream_.device_index();
  read_peaks();
  for (const IdleRegion& it : regions) {
    // Another thread may have taken it again, elsewhere.
    std::size_t base = it.base;
    regions_[it.region].base.compare_exchange_strong(base, 0);
    plan_.gone(it.held);
  }
  for (const IdleRegion& it : regions) {
    assert_no_lock_held("giving a region back");
    auto* const base = reinterpret_cast<void*>(it.base);
    tell_of(around_.whole, base, static_cast<std::int64_t>(it.held.bytes), device);
    const auto since = c10::getApproximateTime();
    delete_below_.load(std::memory_order_relaxed)(base);
    around_.history.asked_for_region(since, it.base, it.held.requested);
  }
  around_.below.resetPeakStats(device);
}

} // namespace pinbuddy

#endif
