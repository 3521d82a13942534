// Requests for which a plan may have a place: what the plan of the current stream has for them, and who is told of it.
//
// Knows neither what becomes of other requests nor what gives way where memory is short. Invariant: a place that nobody could be
// told of is free again.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "all_streams.h"
#include "capturing.h"
#include "device_history.h"
#include "device_notes.h"
#include "device_reports.h"
#include "profiling.h"

namespace pinbuddy {

class Planning : public Capturing {
 public:
  Planning(device_memory::CUDAAllocator* below, bool planned, bool traces)
      : Capturing(below, planned), streams_(planned), notes_(traces) {}

 protected:
  // Planned memory for a request of the current stream; null if there is none for it.
  void* take(std::size_t bytes) {
    if (C10_LIKELY(!streams_.may_plan(bytes))) {
      return nullptr;
    }
    const c10::DeviceIndex device = c10::cuda::current_device();
    const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream(device);
    if (C10_UNLIKELY(captures_.any()) && captures_.takes(device, stream.stream())) {
      return nullptr;
    }
    Streams& own = streams_[device];
    StreamMemory* memory = own.of(stream, [&]() -> StreamMemory::Around {
      return {*below_, *this, history_, streams_.span(), captures_.events(), streams_.moves(), own.peaks(), streams_.passed(), notes_.trace(device)};
    });
    streams_.count();
    if (memory == nullptr || !below_->isEnabled()) {
      return nullptr;
    }
    StreamMemory::Given given = memory->allocate(bytes, captures_.releases());
    if (C10_UNLIKELY(given.address == nullptr && memory->is_planned())) {
      device_unserved();
      if (costs_too_much(own, *memory, bytes)) {
        given = memory->room(bytes);
      }
    }
    return hand_out(*memory, given, bytes);
  }

  // What is idle in a region of the current stream, for a request for which there is no other memory; or null.
  void* borrow(std::size_t bytes) {
    const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
    StreamMemory* memory = streams_[stream.device_index()].find(stream);
    if (memory == nullptr || captures_.takes(stream.device_index(), stream.stream()) || !below_->isEnabled()) {
      return nullptr;
    }
    return hand_out(*memory, memory->borrow(bytes), bytes);
  }

  void free_planned(StreamMemory& owner, void* address) {
    tell_tracer(address, /*came=*/false);
    if (C10_UNLIKELY(history_.any())) {
      note_free(owner.block_at(address));
    }
    const std::size_t bytes = owner.free(address);
    tell_profiler(*this, address, -static_cast<std::int64_t>(bytes), owner.stream().device_index());
  }

  AllStreams streams_;
  DeviceNotes notes_;
  // Whether all that is reserved is what a recorded run would have: nothing of pools, of other streams, or from before.
  std::atomic<bool> is_comparable_{true};

 private:
  // Whether the plans of the device have just been dropped, for which the memory's plan has no place for so many bytes: they make
  // PyTorch's allocator reserve more than it would by itself.
  [[gnu::noinline]] bool costs_too_much(Streams& own, const StreamMemory& memory, std::size_t bytes) {
    const bool is_comparable = !captures_.any_ever() && is_comparable_.load(std::memory_order_relaxed);
    if (bytes < StreamMemory::kLong || memory.is_dropped() || !is_comparable) {
      return false;
    }
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const c10::DeviceIndex device = memory.stream().device_index();
    const auto stats = below_->getDeviceStats(device);
    Counted planned;
    own.each([&](StreamMemory& it) { planned += it.counted(); });
    const std::int64_t in_use =
        stats.allocated_bytes[kAll].current - planned.regions.bytes.current + planned.blocks.active_bytes.current;
    const std::int64_t reserved = stats.reserved_bytes[kAll].current;
    const auto least = [](std::int64_t bytes) { return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)); };
    if (!device_costs_too_much(device, least(reserved), least(in_use))) {
      return false;
    }
    own.each([](StreamMemory& it) { it.step_aside(); });
    return true;
  }

  void* hand_out(StreamMemory& memory, StreamMemory::Given given, std::size_t bytes) {
    if (given.address != nullptr) {
      // Telling of it calls Python, which may throw; so may telling of a region that goes with the block.
      auto taken = c10::make_scope_exit([&] {
        try {
          memory.free(given.address);
        } catch (...) {
        }
      });
      if (C10_UNLIKELY(history_.any())) {
        const c10::cuda::CUDAStream stream = memory.stream();
        note_alloc({stream.device_index(), stream.stream(), reinterpret_cast<std::size_t>(given.address), bytes});
      }
      report_planned(*this, given.address, given.bytes, memory.stream().device_index());
      taken.release();
    }
    return given.address;
  }
};

} // namespace pinbuddy
