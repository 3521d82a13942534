// The streams that have asked for planned memory, which of them an address is of, and which requests a plan may serve at all.
//
// Most requests of a program are none of a plan's, and most blocks lie in no region. Invariants: a stream that was added stays where
// it is for good, so that readers take no lock; a request that is turned away here would get no place; an address that was handed
// out of a region is within the span. Knows neither captures nor reports.
#pragma once

#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>

#include "../lock.h"
#include "peaks.h"
#include "pinbuddy-bridge/src/lib.rs.h"
#include "stream_memory.h"

namespace pinbuddy {

// The streams of a device that have asked for planned memory, in their order. Grows only.
class Streams {
 public:
  static constexpr std::size_t kMost = 64;

  // The stream's memory; null if it has not asked.
  StreamMemory* find(c10::cuda::CUDAStream stream) {
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t index = 0; index < count; ++index) {
      // By their numbers: to ask for a stream's handle sets the device.
      if (all_[index]->stream() == stream) {
        return all_[index].get();
      }
    }
    return nullptr;
  }

  // The same of one that may be new; null if there are too many.
  [[gnu::noinline]] StreamMemory* add(const Around& around, c10::cuda::CUDAStream stream) {
    Lock guard(mutex_);
    const std::size_t count = count_.load(std::memory_order_relaxed);
    StreamMemory* found = find(stream);
    if (found != nullptr || count == kMost) {
      return found;
    }
    all_[count] = std::make_unique<StreamMemory>(around, peaks_, stream, static_cast<std::uint32_t>(count));
    count_.store(count + 1, std::memory_order_release);
    return all_[count].get();
  }

  template <class Act>
  void each(Act act) {
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t index = 0; index < count; ++index) {
      act(*all_[index]);
    }
  }

  // Memory is short: gives back what is idle, or drops the plans, too, once what other streams use is idle, as the allocator below
  // waits for them; false if that is nothing.
  bool give_way(GiveBack why) {
    bool any = false;
    each([&](StreamMemory& it) {
      it.settle(StreamMemory::Settle::kWait);
      any = (why == GiveBack::Short ? it.give_back(why) : it.drop()) || any;
    });
    return any;
  }

  // What there was at most before the regions came or went.
  Peaks& peaks() {
    return peaks_;
  }

 private:
  std::mutex mutex_;
  Peaks peaks_;
  std::atomic<std::size_t> count_{0};
  std::array<std::unique_ptr<StreamMemory>, kMost> all_;
};

// Those of all devices.
class AllStreams {
 public:
  // There are so many devices. Before that there are none.
  void begin(int devices) {
    devices_.store(std::min<int>(devices, all_.size()), std::memory_order_release);
  }

  int devices() const {
    return devices_.load(std::memory_order_acquire);
  }

  Streams& operator[](c10::DeviceIndex device) {
    return all_[static_cast<std::uint8_t>(device)];
  }

  // Whether a plan may have a place for so many bytes.
  bool may_plan(std::size_t bytes) const {
    return bytes >= least_ && bytes <= most_.load(std::memory_order_relaxed);
  }

  // The stream's memory; null if there are too many. Streams are numbered by the requests that are asked about.
  StreamMemory* of(const Around& around, c10::cuda::CUDAStream stream) {
    Streams& own = (*this)[stream.device_index()];
    StreamMemory* found = own.find(stream);
    if (C10_UNLIKELY(found == nullptr)) {
      found = own.add(around, stream);
      // Another thread may have found it before: then nobody forgets it.
      if (const std::size_t longest = found == nullptr ? kAll : device_longest(); longest != kAll) {
        most_.store(longest, std::memory_order_relaxed);
      }
    }
    return found;
  }

  Span& span() {
    return span_;
  }

  // Whose region holds the address; null if none does.
  StreamMemory* owner_of(const void* address) {
    StreamMemory* owner = nullptr;
    if (C10_UNLIKELY(span_.holds(address))) {
      for (int device = 0; device < devices() && owner == nullptr; ++device) {
        all_[device].each([&](StreamMemory& it) { owner = it.region_of(address) != nullptr ? &it : owner; });
      }
    }
    return owner;
  }

  template <class Act>
  void each(Act act) {
    for (int device = 0; device < devices(); ++device) {
      all_[device].each(act);
    }
  }

 private:
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

  const std::size_t least_ = device_threshold();
  std::atomic<std::size_t> most_{kAll};
  Span span_;
  std::atomic<int> devices_{0};
  // As many as an index of c10 can name: none is out of bounds.
  std::array<Streams, 128> all_;
};

} // namespace pinbuddy
