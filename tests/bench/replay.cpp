#include "replay.h"

#include "clock.h"
#include "fork.h"
#include "host_runtime.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <map>

namespace bench {
namespace {

constexpr std::size_t kSamples = 600;

Pinned pinned(at::HostAllocator* allocator) {
  if (is_counted()) {
    return counted();
  }
  const at::HostStats stats = allocator->get_stats();
  return {
      static_cast<std::uint64_t>(stats.allocated_bytes.current),
      static_cast<std::uint64_t>(stats.allocated_bytes.peak),
      static_cast<std::uint64_t>(stats.num_host_alloc)};
}

// The trace's streams.
class Streams {
 public:
  c10::Stream operator[](std::uint16_t number) {
    const auto known = streams_.find(number);
    if (known != streams_.end()) {
      return known->second;
    }
    return streams_.emplace(number, cuda_.getStreamFromGlobalPool(device_)).first->second;
  }

  // Waits until events that were recorded on them are complete.
  void settle() const {
    for (const auto& [number, stream] : streams_) {
      cuda_.synchronizeStream(stream);
    }
  }

 private:
  const c10::impl::VirtualGuardImpl cuda_{c10::DeviceType::CUDA};
  const c10::Device device_{c10::DeviceType::CUDA, 0};
  std::map<std::uint16_t, c10::Stream> streams_;
};

void wait_until(double start, std::uint64_t microseconds) {
  const auto at = static_cast<std::uint64_t>(start) + microseconds * 1000;
  const timespec when{
      static_cast<time_t>(at / 1000000000), static_cast<long>(at % 1000000000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr) == EINTR) {
  }
}

struct Slot {
  at::DataPtr block;
  std::uint64_t bytes = 0;
  bool used = false; // on a stream
};

} // namespace

Replayed replay(at::HostAllocator* allocator, const Trace& trace, Pace pace) {
  Replayed result;
  std::vector<Slot> slots(trace.slots);
  std::uint64_t live = 0;
  std::uint64_t peak_live = 0;
  Iteration now;
  in_nanoseconds(0); // calibrated before it counts
  const Ticks cost = ticks_of_asking();
  const Pinned before = pinned(allocator);
  double pins_before = static_cast<double>(before.pins);
  const auto end_iteration = [&] {
    const auto pins = static_cast<double>(pinned(allocator).pins);
    now.pins = pins - pins_before;
    pins_before = pins;
    result.iterations.push_back(now);
    now = {};
  };

  const std::size_t every = std::max<std::size_t>(1, trace.events.size() / kSamples);
  const std::uint64_t first = trace.events.empty() ? 0 : trace.events.front().microseconds;
  const double start = wall_nanoseconds();
  Streams streams;
  bool unsettled = false;
  bool open = false;
  // Whether a warm-up may be under way.
  bool warming = pace != Pace::kPaced;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    Slot& slot = slots[event.slot];
    if (pace == Pace::kPaced) {
      wait_until(start, event.microseconds - first);
    } else if (unsettled && event.op == Op::allocate) {
      streams.settle();
      unsettled = false;
    }
    open = event.op != Op::iteration;
    const Ticks began = ticks_now();
    switch (event.op) {
      case Op::allocate:
        slot.block = allocator->allocate(event.bytes);
        break;
      case Op::free:
        slot.block.clear();
        break;
      case Op::event:
        allocator->record_event(
            slot.block.get(), slot.block.get_context(), streams[event.stream]);
        slot.used = true;
        break;
      case Op::clear:
        allocator->empty_cache();
        break;
      case Op::iteration:
        break;
    }
    const Ticks took = ticks_now() - began;
    now.nanoseconds += in_nanoseconds(took > cost ? took - cost : 0);

    if (event.op == Op::allocate) {
      if (warming) {
        wait_for_warm_up();
      }
      slot.bytes = event.bytes;
      live += slot.bytes;
      peak_live = std::max(peak_live, live);
    } else if (event.op == Op::free) {
      live -= slot.bytes;
      unsettled = unsettled || slot.used;
      slot = {};
    } else if (event.op == Op::clear) {
      warming = pace != Pace::kPaced;
      result.live_at_clear = static_cast<double>(live);
      result.pinned_after_clear = static_cast<double>(pinned(allocator).bytes);
    } else if (event.op == Op::iteration) {
      warming = pace == Pace::kFree;
      end_iteration();
    }
    if (i % every == 0 || i + 1 == trace.events.size()) {
      result.samples.push_back(
          {static_cast<double>(event.microseconds - first),
           static_cast<double>(live),
           static_cast<double>(pinned(allocator).bytes)});
    }
  }
  if (open) {
    end_iteration();
  }
  result.peak_live = static_cast<double>(peak_live);
  result.peak_pinned = static_cast<double>(pinned(allocator).peak);
  return result;
}

} // namespace bench
