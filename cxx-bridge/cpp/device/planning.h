// Requests for which a plan may have a place: what the plan of the current stream has for them, and who is told of it.
//
// Knows neither what becomes of other requests nor what gives way where memory is short. Invariant: a place that nobody could be
// told of is free again.
#pragma once

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/ScopeExit.h>

#include <cstddef>
#include <cstdint>

#include "capturing.h"
#include "device_history.h"
#include "device_notes.h"
#include "device_reports.h"
#include "profiling.h"
#include "streams.h"

namespace pinbuddy {

class Planning : public Capturing {
 public:
  Planning(device_memory::CUDAAllocator* below, bool planned) : Capturing(below, planned), streams_(planned) {}

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
    StreamMemory* memory = streams_.of(around_, stream);
    if (memory == nullptr || !below_->isEnabled()) {
      return nullptr;
    }
    return hand_out(*memory, memory->allocate(bytes, captures_.releases()), bytes);
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

 private:
  const Around around_{*below_, *this, history_, streams_.span(), captures_.events()};

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
    } else if (C10_UNLIKELY(memory.is_planned())) {
      device_unserved();
    }
    return given.address;
  }
};

} // namespace pinbuddy
