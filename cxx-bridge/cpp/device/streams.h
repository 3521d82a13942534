// The streams of a device that have asked for planned memory, and which of them an address is of.
//
// Invariant: a stream that was added stays where it is for good, so that readers take no lock.
#pragma once

#include <c10/cuda/CUDAStream.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "../lock.h"
#include "peaks.h"
#include "stream_memory.h"

namespace pinbuddy {

// The streams of a device that have asked for planned memory, in their order. Grows only.
class Streams {
 public:
  static constexpr std::size_t kMost = 64;

  // The stream's memory; null if it has none. `around` is called for one that is new.
  template <class Around>
  StreamMemory* of(c10::cuda::CUDAStream stream, Around around) {
    StreamMemory* found = find(stream);
    return C10_LIKELY(found != nullptr) ? found : add(stream, around());
  }

  // The same of a stream that has asked before.
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

  std::size_t count() const {
    return count_.load(std::memory_order_acquire);
  }

  template <class Act>
  void each(Act act) {
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t index = 0; index < count; ++index) {
      act(*all_[index]);
    }
  }

  // Whether any of them has a region.
  bool reserved() {
    bool any = false;
    each([&](StreamMemory& it) { any = any || it.plan().reserved_bytes() > 0; });
    return any;
  }

  // How much of the regions nobody uses.
  std::int64_t idle() {
    std::int64_t bytes = 0;
    each([&](StreamMemory& it) { bytes += static_cast<std::int64_t>(it.plan().idle()); });
    return bytes;
  }

  // Memory is short: gives back what is idle, once what other streams use is idle too, as the allocator below waits for them; false
  // if that is nothing.
  bool give_back() {
    return any_settled([](StreamMemory& it) { return it.give_back(GiveBack::Short); });
  }

  // The same, with the plans dropped; whether any was used.
  bool drop() {
    return any_settled([](StreamMemory& it) { return it.drop(); });
  }

  // What there was at most before the regions came or went.
  Peaks& peaks() {
    return peaks_;
  }

  void reset_peaks(const Tally& tally) {
    peaks_.reset(tally);
    each([](StreamMemory& it) { it.plan().reset_peaks(); });
  }

  StreamMemory* owner(const void* address) {
    StreamMemory* owner = nullptr;
    each([&](StreamMemory& it) { owner = it.region_of(address) != nullptr ? &it : owner; });
    return owner;
  }

 private:
  // Does this with each stream, for which nothing is outstanding then; whether it was so with any.
  template <class Act>
  bool any_settled(Act act) {
    bool any = false;
    each([&](StreamMemory& it) {
      it.settle(StreamMemory::Settle::kWait);
      any = act(it) || any;
    });
    return any;
  }

  [[gnu::noinline]] StreamMemory* add(c10::cuda::CUDAStream stream, const StreamMemory::Around& around) {
    Lock guard(mutex_);
    if (StreamMemory* found = find(stream)) {
      return found;
    }
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (count == kMost) {
      return nullptr;
    }
    all_[count] = std::make_unique<StreamMemory>(around, stream, static_cast<std::uint32_t>(count));
    count_.store(count + 1, std::memory_order_release);
    return all_[count].get();
  }

  std::mutex mutex_;
  Peaks peaks_;
  std::atomic<std::size_t> count_{0};
  std::array<std::unique_ptr<StreamMemory>, kMost> all_;
};

} // namespace pinbuddy
