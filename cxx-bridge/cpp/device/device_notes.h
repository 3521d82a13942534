// What the allocator below says that it does, passed on: to traces, and to the recording that becomes a plan.
//
// It says so through its own trace tracker, under its lock: nothing of `take` calls it, Python or the planner. Invariant: what a
// recording has is what a run with its plan asks the plan for.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <atomic>
#include <cstddef>

#include "asking.h"
#include "pinbuddy-bridge/src/lib.rs.h"
#include "round_up.h"

namespace pinbuddy {

class DeviceNotes {
 public:
  using Entry = c10::cuda::CUDACachingAllocator::TraceEntry;

  // Before a request goes to the allocator below, under no lock: what the recording could not do under its lock.
  void catch_up() {
    if (C10_UNLIKELY(due_.load(std::memory_order_relaxed)) && due_.exchange(false)) {
      device_record_catch_up();
    }
  }

  void take(const Entry& entry) {
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
        .rounded = round_up(entry.size_),
        .is_ordinary = entry.mempool_ == c10::MempoolId_t{0, 0} && asking == Asking::kOrdinary,
        .is_region = asking == Asking::kRegion,
    });
    if (is_due) {
      due_.store(true, std::memory_order_relaxed);
    }
  }

 private:
  // The recording has something to do. Two threads may do it, or the next request.
  std::atomic<bool> due_{false};
};

} // namespace pinbuddy
