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
#include "stream_memory.h"

namespace pinbuddy {

// The streams of a device that have asked for planned memory, in their order. Grows only.
class Streams {
 public:
  static constexpr std::size_t kMost = 64;

  // The stream's memory, which is recorded in `trace` unless that is null; null if it has none.
  StreamMemory* of(
      c10::cuda::CUDAStream stream,
      StreamMemory::Below& below,
      StreamMemory::Below& whole,
      DeviceTrace* trace) {
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t index = 0; index < count; ++index) {
      // By their numbers: to ask for a stream's handle sets the device.
      if (all_[index]->stream() == stream) {
        return all_[index].get();
      }
    }
    return add(stream, below, whole, trace);
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
    each([&](StreamMemory& it) { any = any || it.reserved() > 0; });
    return any;
  }

  // Drops their plans, and gives back what is idle. Events are only asked for while `settling`.
  void give_way(bool settling) {
    gave_way_.fetch_add(1, std::memory_order_relaxed);
    each([&](StreamMemory& it) {
      if (it.reserved() > 0) {
        if (settling) {
          it.settle();
        }
        it.give_back(/*for_good=*/true);
      }
    });
  }

  // For how many failures they did: none of these was the program's.
  std::int64_t gave_way() const {
    return gave_way_.load(std::memory_order_relaxed);
  }

  void reset_accumulated() {
    each([](StreamMemory& it) { it.reset_accumulated(); });
    gave_way_.store(0, std::memory_order_relaxed);
  }

  StreamMemory* owner(const void* address) {
    StreamMemory* owner = nullptr;
    each([&](StreamMemory& it) { owner = it.owns(address) ? &it : owner; });
    return owner;
  }

 private:
  [[gnu::noinline]] StreamMemory* add(
      c10::cuda::CUDAStream stream,
      StreamMemory::Below& below,
      StreamMemory::Below& whole,
      DeviceTrace* trace) {
    Lock guard(mutex_);
    const std::size_t count = count_.load(std::memory_order_relaxed);
    for (std::size_t index = 0; index < count; ++index) {
      if (all_[index]->stream() == stream) {
        return all_[index].get();
      }
    }
    if (count == kMost) {
      return nullptr;
    }
    all_[count] = std::make_unique<StreamMemory>(
        below, whole, stream, static_cast<std::uint32_t>(count), trace);
    count_.store(count + 1, std::memory_order_release);
    return all_[count].get();
  }

  std::mutex mutex_;
  std::atomic<std::int64_t> gave_way_{0};
  std::atomic<std::size_t> count_{0};
  std::array<std::unique_ptr<StreamMemory>, kMost> all_;
};

} // namespace pinbuddy
