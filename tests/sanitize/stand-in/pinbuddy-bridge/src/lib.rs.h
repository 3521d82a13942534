// A stand-in for Rust, by the name of the header that cxx makes: an engine in its plainest form, behind one lock, and a plan
// beside it. Segments are pinned when a request finds no room, up to a budget; the lowest free run that is long enough serves.
// With BUDDY_NUMA there are two homes: the second may pin one segment, and takes the first one's memory where that is full.
//
// As the real one it calls C++ only where it holds no lock, and ends the program where memory comes back
// that it did not grant. All of the C++ side is one translation unit, which this header is in once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "host_allocator.h"
#include "plan.h"
#include "runtime.h"
#include "rust/cxx.h"

namespace pinbuddy {
namespace {

constexpr std::size_t kUnit = 4096;
constexpr std::size_t kSegment = std::size_t{8} << 20;
constexpr std::size_t kSegments = 6;
constexpr std::size_t kThreshold = std::size_t{1} << 20;
constexpr std::size_t kOfSecondHome = 1;

struct Segment {
  std::size_t address = 0;
  std::uint32_t home = 0;
  // Offset and length of each live block; 0: no segment is here, or it is on its way.
  std::map<std::size_t, std::size_t> live;
  bool there = false;
  bool on_its_way = false;
};

class Engine {
 public:
  bool request(std::size_t bytes, Grant& grant, bool may_pin) {
    if (bytes > kSegment) {
      return false;
    }
    const std::uint32_t home = grant.segment;
    const std::size_t wanted = (bytes + kUnit - 1) / kUnit * kUnit;
    std::unique_lock guard(mutex_);
    while (true) {
      for (Segment& segment : segments_) {
        // Beside what is cached: only where something is live anyway.
        if (segment.home == home && (may_pin || !segment.live.empty()) && cut(segment, wanted, grant)) {
          return true;
        }
      }
      if (!may_pin) {
        return false;
      }
      const auto free = std::find_if(std::begin(segments_), std::end(segments_), [](Segment& it) {
        return !it.there && !it.on_its_way;
      });
      const auto own = std::count_if(std::begin(segments_), std::end(segments_), [home](Segment& it) {
        return it.home == home && (it.there || it.on_its_way);
      });
      if (free == std::end(segments_) || (home != 0 && own >= static_cast<std::ptrdiff_t>(kOfSecondHome))) {
        return std::any_of(std::begin(segments_), std::end(segments_), [&](Segment& it) {
          return it.home != home && cut(it, wanted, grant);
        });
      }
      free->on_its_way = true;
      free->home = home;
      guard.unlock();
      const std::size_t address = pin_region(kSegment, 0);
      guard.lock();
      free->on_its_way = false;
      free->there = true;
      free->address = address;
      add(counters_.segments, 1);
      add(counters_.pinned_bytes, kSegment);
    }
  }

  void release(const Grant& grant) {
    std::lock_guard guard(mutex_);
    Segment& segment = segments_[grant.segment];
    const auto found = segment.live.find(grant.offset);
    if (!segment.there || found == segment.live.end() || found->second != grant.bytes) {
      std::fprintf(stderr, "released twice, or never granted: offset %zu\n", grant.offset);
      std::abort();
    }
    segment.live.erase(found);
    sub(counters_.active_blocks, 1);
    sub(counters_.active_bytes, grant.bytes);
  }

  // How many segments went.
  std::size_t clear(std::size_t most) {
    std::size_t gone = 0;
    for (; gone < most; ++gone) {
      std::unique_lock guard(mutex_);
      const auto idle = std::find_if(std::begin(segments_), std::end(segments_), [](Segment& it) {
        return it.there && it.live.empty();
      });
      if (idle == std::end(segments_)) {
        break;
      }
      idle->there = false;
      idle->on_its_way = true;
      const std::size_t address = idle->address;
      guard.unlock();
      unpin_region(address, kSegment);
      guard.lock();
      idle->on_its_way = false;
      sub(counters_.segments, 1);
      sub(counters_.pinned_bytes, kSegment);
    }
    return gone;
  }

  void reused(std::size_t blocks, std::size_t bytes) {
    std::lock_guard guard(mutex_);
    for (auto [counter, by] : {std::pair{&counters_.active_blocks, blocks}, {&counters_.active_bytes, bytes}}) {
      counter->allocated += static_cast<std::int64_t>(by);
      counter->freed += static_cast<std::int64_t>(by);
    }
  }

  Counters counters() {
    std::lock_guard guard(mutex_);
    return counters_;
  }

  rust::Vec<Part> parts() {
    std::lock_guard guard(mutex_);
    rust::Vec<Part> parts;
    for (const Segment& segment : segments_) {
      for (const auto& [offset, bytes] : segment.live) {
        parts.push_back({segment.address + offset, bytes, true, false});
      }
    }
    return parts;
  }

 private:
  bool cut(Segment& segment, std::size_t wanted, Grant& grant) {
    if (!segment.there) {
      return false;
    }
    std::size_t offset = 0;
    for (const auto& [begin, bytes] : segment.live) {
      if (begin - offset >= wanted) {
        break;
      }
      offset = begin + bytes;
    }
    if (kSegment - offset < wanted) {
      return false;
    }
    segment.live.emplace(offset, wanted);
    const auto number = static_cast<std::uint32_t>(&segment - segments_);
    grant = {segment.address + offset, wanted, number, offset};
    add(counters_.active_blocks, 1);
    add(counters_.active_bytes, wanted);
    return true;
  }

  static void add(Counter& counter, std::size_t by) {
    counter.current += static_cast<std::int64_t>(by);
    counter.allocated += static_cast<std::int64_t>(by);
    counter.peak = std::max(counter.peak, counter.current);
  }
  static void sub(Counter& counter, std::size_t by) {
    counter.current -= static_cast<std::int64_t>(by);
    counter.freed += static_cast<std::int64_t>(by);
  }

  std::mutex mutex_;
  Segment segments_[kSegments];
  Counters counters_{};
};

Engine& engine() {
  static auto* engine = new Engine;
  return *engine;
}

} // namespace

bool engine_enabled() noexcept {
  return true;
}

bool engine_guarded() noexcept {
  return std::getenv("BUDDY_GUARD") != nullptr;
}
const Guard& engine_guard() noexcept {
  static const Guard guard;
  return guard;
}

// The queues of freed blocks, in the order of streams' names: of each the oldest event, unless somebody asks for it.
class PendingQueues {
 public:
  void push(std::uint64_t stream, std::size_t event, std::size_t block) const noexcept {
    std::lock_guard guard(mutex_);
    waiting_[stream].events.emplace_back(event, block);
  }
  std::size_t streams() const noexcept {
    std::lock_guard guard(mutex_);
    return waiting_.size();
  }
  bool begin(std::size_t& left, std::uint64_t& stream, std::size_t& event, std::size_t& block) const noexcept {
    std::lock_guard guard(mutex_);
    // Those that were found busy come first.
    auto at = waiting_.begin();
    std::advance(at, waiting_.size() - std::min(left, waiting_.size()));
    for (; at != waiting_.end(); ++at, --left) {
      if (!at->second.is_asked && !at->second.events.empty()) {
        at->second.is_asked = true;
        stream = at->first;
        std::tie(event, block) = at->second.events.front();
        return true;
      }
    }
    return false;
  }
  void end(std::uint64_t stream, bool over) const noexcept {
    std::lock_guard guard(mutex_);
    Waiting& own = waiting_[stream];
    own.is_asked = false;
    if (over) {
      own.events.pop_front();
    }
  }

 private:
  struct Waiting {
    std::deque<std::pair<std::size_t, std::size_t>> events;
    bool is_asked = false;
  };
  mutable std::mutex mutex_;
  mutable std::map<std::uint64_t, Waiting> waiting_;
};
const PendingQueues& engine_pending() noexcept {
  // Leaked, as the bridge's is: blocks may wait for events at the end of the process.
  static const auto* queues = new PendingQueues;
  return *queues;
}
void engine_report_settings() noexcept {}
bool device_planned() noexcept {
  return false;
}
bool device_records() noexcept {
  return false;
}
bool device_traces() noexcept {
  return false;
}
void device_absent(rust::String) noexcept {}
std::size_t engine_threshold() noexcept {
  return kThreshold;
}
std::size_t engine_segment_bytes() noexcept {
  return kSegment;
}
std::size_t engine_homes() noexcept {
  return stand_in::has_nodes() ? 2 : 1;
}
std::uint32_t engine_home_of(std::int32_t device) noexcept {
  return static_cast<std::uint32_t>(device % 2);
}
bool engine_request(std::size_t bytes, Grant& grant) noexcept {
  return engine().request(bytes, grant, true);
}
bool engine_request_beside(std::size_t bytes, std::size_t, std::size_t, Grant& grant) noexcept {
  return engine().request(bytes, grant, false);
}
std::size_t engine_slots() noexcept {
  return Plan::kSlots;
}
std::uint32_t engine_size_classes() noexcept {
  return 0;
}
bool engine_is_planned(const Grant& grant) noexcept {
  return grant.segment == Plan::kNumber;
}
bool engine_request_planned(std::size_t bytes, Grant& grant) noexcept {
  return plan().request(bytes, grant);
}
bool engine_slot_at(std::size_t address, std::uint32_t& slot) noexcept {
  return plan().slot_at(address, slot);
}

void engine_reused(std::size_t blocks, std::size_t bytes) noexcept {
  engine().reused(blocks, bytes);
}
void engine_cache(const Grant&) noexcept {}
void engine_defer(const Grant&) noexcept {}
void engine_release(const Grant& grant) noexcept {
  if (engine_is_planned(grant)) {
    plan().release(grant);
  } else {
    engine().release(grant);
  }
}
void engine_empty_cache() noexcept {
  plan().clear();
  engine().clear(kSegments);
}
void engine_close() noexcept {}
bool engine_enter_child() noexcept {
  // As in Rust: the recorder's thread is not here.
  record(false);
  return true;
}
void engine_made_child() noexcept {}
bool engine_give_way(std::size_t) noexcept {
  return engine().clear(1) != 0;
}
Counters engine_counters() noexcept {
  return engine().counters();
}
void engine_reset_peaks() noexcept {}
void engine_reset_accumulated() noexcept {}
rust::Vec<Part> engine_parts() noexcept {
  return engine().parts();
}
rust::String engine_state_line() noexcept {
  return "";
}
rust::String engine_refused_line(std::size_t) noexcept {
  return "";
}

// All is recorded, and what was is not kept.
std::atomic<std::uint64_t> allocations{0};
void engine_arm_record() noexcept {
  record(true);
}
void engine_record_begin() noexcept {}
bool record_is_on() noexcept {
  return true;
}
bool record_request(std::size_t, bool, std::uint64_t& allocation) noexcept {
  allocation = ++allocations;
  return true;
}
// An end without its beginning.
void check_recorded(std::uint64_t allocation) {
  if (allocation == 0 || allocation > allocations) {
    std::fprintf(stderr, "an allocation that was not recorded\n");
    std::abort();
  }
}
void record_free(std::uint64_t allocation, std::size_t) noexcept {
  check_recorded(allocation);
}
void record_done(std::uint64_t allocation) noexcept {
  check_recorded(allocation);
}
void record_use(std::uint64_t allocation, std::uint64_t) noexcept {
  check_recorded(allocation);
}
void record_clear() noexcept {}
void wait_begins(bool) noexcept {}
void wait_ends() noexcept {}
void engine_record_close() noexcept {}

} // namespace pinbuddy
