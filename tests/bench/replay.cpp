#include "replay.h"

#include "clock.h"
#include "looked_up.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>
#include <thread>

namespace bench {
namespace {

constexpr std::size_t kSamples = 600;

enum class Op : std::uint8_t { allocate = 0, free = 1, event = 2, clear = 3, iteration = 4 };

struct Event {
  std::uint64_t microseconds;
  std::uint64_t bytes; // of an allocation
  std::uint32_t slot;
  std::uint16_t stream;
  Op op;
  std::uint8_t unused;
};
static_assert(sizeof(Event) == 24);

struct Trace {
  std::uint64_t slots = 0;
  std::vector<Event> events;
};

// In the form that traces.py writes. Little-endian: "PBTRACE1", slots (u64), events (u64), then 24 bytes per event. A slot holds
// one live block; ids of the JSON form are slots here.
Trace read_trace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  struct {
    char magic[8];
    std::uint64_t slots;
    std::uint64_t events;
  } head{};
  file.read(reinterpret_cast<char*>(&head), sizeof head);
  if (!file || std::memcmp(head.magic, "PBTRACE1", sizeof head.magic) != 0) {
    throw std::runtime_error(path + " is no trace");
  }
  Trace trace{head.slots, std::vector<Event>(head.events)};
  const auto bytes = static_cast<std::streamsize>(head.events * sizeof(Event));
  if (!file.read(reinterpret_cast<char*>(trace.events.data()), bytes)) {
    throw std::runtime_error(path + " is cut off");
  }
  for (const Event& event : trace.events) {
    if (event.op > Op::iteration || event.slot >= trace.slots) {
      throw std::runtime_error(path + " holds an event that is none");
    }
  }
  return trace;
}

Pinned pinned(at::HostAllocator* allocator) {
  if (is_counted()) {
    return counted();
  }
  const at::HostStats stats = allocator->get_stats();
  const auto number = [](auto it) { return static_cast<double>(it); };
  const auto& bytes = stats.allocated_bytes;
  return {number(bytes.current), number(bytes.peak), number(stats.num_host_alloc)};
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

struct Slot {
  at::DataPtr block;
  double bytes = 0;
  bool used = false; // on a stream
};

} // namespace

Numbers replay(at::HostAllocator* allocator, const std::string& path, Pace pace) {
  const Trace trace = read_trace(path);
  Numbers result;
  std::vector<double>& iterations = result["iteration_ns"];
  std::vector<double>& iteration_pins = result["iteration_pins"];
  double& peak_live = result["peak_live"].emplace_back();
  double& live_at_clear = result["live_at_clear"].emplace_back();
  double& pinned_after_clear = result["pinned_after_clear"].emplace_back();
  std::vector<Slot> slots(trace.slots);
  double live = 0;
  double now = 0; // nanoseconds of this iteration
  nanoseconds_since(ticks_now()); // calibrated before it counts
  double pins_before = pinned(allocator).pins;
  const auto end_iteration = [&] {
    const double pins = pinned(allocator).pins;
    iterations.push_back(now);
    iteration_pins.push_back(pins - pins_before);
    pins_before = pins;
    now = 0;
  };

  const std::size_t every = std::max<std::size_t>(1, trace.events.size() / kSamples);
  const std::uint64_t first = trace.events.empty() ? 0 : trace.events.front().microseconds;
  const auto start = std::chrono::steady_clock::now();
  Streams streams;
  bool unsettled = false;
  bool open = false;
  // Whether a warm-up may be under way.
  bool warming = pace != Pace::kPaced;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    Slot& slot = slots[event.slot];
    if (pace == Pace::kPaced) {
      std::this_thread::sleep_until(start + std::chrono::microseconds(event.microseconds - first));
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
    now += nanoseconds_since(began);

    if (event.op == Op::allocate) {
      if (warming) {
        wait_for_warm_up();
      }
      slot.bytes = static_cast<double>(event.bytes);
      live += slot.bytes;
      peak_live = std::max(peak_live, live);
    } else if (event.op == Op::free) {
      live -= slot.bytes;
      unsettled = unsettled || slot.used;
      slot = {};
    } else if (event.op == Op::clear) {
      warming = pace != Pace::kPaced;
      live_at_clear = live;
      pinned_after_clear = pinned(allocator).bytes;
    } else if (event.op == Op::iteration) {
      warming = pace == Pace::kFree;
      end_iteration();
    }
    if (i % every == 0 || i + 1 == trace.events.size()) {
      result["sample_us"].push_back(static_cast<double>(event.microseconds - first));
      result["sample_live"].push_back(live);
      result["sample_pinned"].push_back(pinned(allocator).bytes);
    }
  }
  if (open) {
    end_iteration();
  }
  result["peak_pinned"] = {pinned(allocator).peak};
  return result;
}

} // namespace bench
