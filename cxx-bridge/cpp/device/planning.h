// Requests for which a plan may have a place: what the plan of the current stream has for them, and who is told of it. For that it
// knows the captures and pools under way, and what the program asks of the history.
//
// Knows neither what becomes of other requests nor what gives way where memory is short. Invariants: a place that nobody could be
// told of is free again; where no plan is used, only the allocator below remembers anything.
#pragma once

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/ScopeExit.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "captures.h"
#include "device_history.h"
#include "forwarding.h"
#include "profiling.h"
#include "streams.h"

namespace pinbuddy {

class Planning : public Forwarding<device_memory::CUDAAllocator> {
 public:
  Planning(device_memory::CUDAAllocator* below, bool planned) : Forwarding(below), planned_(planned) {}

  void beginAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool, Captures::Filter filter) override {
    below_->beginAllocateToPool(device, pool, filter);
    captures_.begin(device, pool, std::move(filter));
    device_tally(device).has_pool();
  }

  void endAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    // Before the graph goes, into which its filter looks.
    captures_.end(device, pool);
    below_->endAllocateToPool(device, pool);
  }

  void markCaptureBegin(c10::DeviceIndex device) {
    captures_.events().hold(1);
    Forwarding::markCaptureBegin(device);
  }

  void markCaptureEnd(c10::DeviceIndex device) {
    Forwarding::markCaptureEnd(device);
    captures_.events().hold(-1);
  }

  void recordHistory(
      bool enabled,
      device_memory::CreateContextFn context,
      std::size_t most,
      device_memory::RecordContext when,
      bool clear,
      const std::vector<std::string>& skip) override {
    below_->recordHistory(enabled, context, most, when, clear, skip);
    if (planned_) {
      history_.record(enabled, context, most, when, clear, skip);
    }
  }

  void pushCompileContext(std::string& data) override {
    below_->pushCompileContext(data);
    DeviceHistory::push_compiled(data);
  }

  void popCompileContext() override {
    below_->popCompileContext();
    DeviceHistory::pop_compiled();
  }

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
    if (memory == nullptr || !memory->is_planned() || !below_->isEnabled()) {
      return nullptr;
    }
    return hand_out(*memory, memory->ask(bytes, /*borrows=*/false, captures_.releases()), bytes);
  }

  // What is idle in a region of the current stream, for a request for which there is no other memory; or null.
  void* borrow(std::size_t bytes) {
    const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
    StreamMemory* memory = streams_[stream.device_index()].find(stream);
    if (memory == nullptr || captures_.takes(stream.device_index(), stream.stream()) || !below_->isEnabled()) {
      return nullptr;
    }
    return hand_out(*memory, memory->ask(bytes, /*borrows=*/true, /*releases=*/false), bytes);
  }

  void free_planned(StreamMemory& owner, void* address) {
    tell_tracer(address, /*came=*/false);
    if (C10_UNLIKELY(history_.any())) {
      if (const auto block = owner.block_at(address); block.requested > 0) {
        history_.freed(block, below_->getUserMetadata());
      }
    }
    const std::size_t bytes = owner.free(address);
    tell_profiler(*this, address, -static_cast<std::int64_t>(bytes), owner.stream().device_index());
  }

  // Whether there are plans.
  const bool planned_;
  DeviceHistory history_;
  Captures captures_;
  AllStreams streams_;

 private:
  const Around around_{*below_, *this, history_, streams_.span(), captures_.events()};

  void* hand_out(StreamMemory& memory, Place place, std::size_t bytes) {
    auto* const address = reinterpret_cast<void*>(place.address);
    if (address != nullptr) {
      // Telling of it calls Python, which may throw; so may telling of a region that goes with the block.
      auto taken = c10::make_scope_exit([&] {
        try {
          memory.free(address);
        } catch (...) {
        }
      });
      const c10::cuda::CUDAStream stream = memory.stream();
      if (C10_UNLIKELY(history_.any())) {
        history_.allocated({stream.device_index(), stream.stream(), place.address, bytes}, below_->getUserMetadata());
      }
      tell_of(*this, address, static_cast<std::int64_t>(place.bytes), stream.device_index());
      taken.release();
    } else if (C10_UNLIKELY(memory.is_planned())) {
      device_unserved();
    }
    return address;
  }
};

} // namespace pinbuddy
