// What the allocator below says that it does, passed on: to traces, and to the recording that becomes a plan.
//
// It says so through its own trace tracker, under its lock: nothing of `take` calls it, Python or the planner. Invariant: what a
// recording has is what a run with its plan asks the plan for.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "asking.h"
#include "pinbuddy-bridge/src/lib.rs.h"
#include "round_up.h"

namespace pinbuddy {

// As many as an index of c10 can name: none is out of bounds.
constexpr int kDevices = 128;

class DeviceNotes {
 public:
  using Entry = c10::cuda::CUDACachingAllocator::TraceEntry;

  explicit DeviceNotes(bool traces) : traces_(traces), records_(device_records()) {}

  // Whether they are wanted.
  bool any() const {
    return traces_ || records_;
  }

  // The trace of a device; null if none is recorded.
  const DeviceTrace* trace(c10::DeviceIndex device) const {
    return traces_ && device >= 0 ? &device_trace(device) : nullptr;
  }

  // Before a request goes to the allocator below, under no lock: what the recording could not do under its lock.
  void catch_up() {
    if (C10_UNLIKELY(due_.load(std::memory_order_relaxed)) && due_.exchange(false)) {
      device_record_catch_up();
    }
  }

  void take(const Entry& entry) {
    const DeviceTrace* to = trace(entry.device_);
    // Whether a run with a plan would ask the plan.
    const bool ordinary = entry.mempool_ == c10::MempoolId_t{0, 0} && asking == Asking::kOrdinary;
    const auto stream = reinterpret_cast<std::size_t>(entry.stream_);
    switch (entry.action_) {
      case Entry::ALLOC:
        if (to != nullptr && asking != Asking::kRegion) {
          to->request(entry.addr_, round_up(entry.size_), stream, !ordinary);
        }
        if (records_ && ordinary) {
          const bool due = device_allocated(entry.device_, stream, entry.addr_, entry.size_, round_up(entry.size_));
          due_.store(due, std::memory_order_relaxed);
        }
        break;
      case Entry::FREE_REQUESTED:
        if (to != nullptr) {
          to->free(entry.addr_);
        }
        break;
      case Entry::FREE_COMPLETED:
        if (to != nullptr) {
          to->done(entry.addr_);
        }
        if (records_) {
          device_freed(entry.device_, entry.addr_);
        }
        break;
      case Entry::OOM:
        if (records_) {
          device_failed();
        }
        break;
      case Entry::SEGMENT_MAP:
        if (records_) {
          device_expandable();
        }
        [[fallthrough]];
      case Entry::SEGMENT_ALLOC:
      case Entry::SEGMENT_FREE:
      case Entry::SEGMENT_UNMAP:
        if (to != nullptr) {
          const bool gone = entry.action_ == Entry::SEGMENT_FREE || entry.action_ == Entry::SEGMENT_UNMAP;
          to->segment(entry.size_, gone);
        }
        break;
      default:
        break;
    }
  }

 private:
  const bool traces_;
  const bool records_;
  // The recording has something to do. Two threads may do it, or the next request.
  std::atomic<bool> due_{false};
};

} // namespace pinbuddy
