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

  // The stream's memory; null if it has none.
  StreamMemory* of(c10::cuda::CUDAStream stream, const StreamMemory::Around& around) {
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t index = 0; index < count; ++index) {
      // By their numbers: to ask for a stream's handle sets the device.
      if (all_[index]->stream() == stream) {
        return all_[index].get();
      }
    }
    return add(stream, around);
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
    each([&](StreamMemory& it) { any = any || it.reserved() > 0; });
    return any;
  }

  // Gives back what is idle; false if that is nothing. Events are only asked for while `settling`.
  bool give_back(StreamMemory::GiveBack why, bool settling) {
    bool any = false;
    each([&](StreamMemory& it) {
      if (settling) {
        it.settle();
      }
      any = it.give_back(why) || any;
    });
    return any;
  }

  // A request that failed is tried again, so its failure is not the program's. `flushed`: the allocator below had given back
  // its own cache for it.
  void forgive(bool flushed) {
    forgiven_.fetch_add(1, std::memory_order_relaxed);
    flushed_.fetch_add(flushed ? 1 : 0, std::memory_order_relaxed);
  }

  // How many of those there were.
  std::int64_t forgiven() const {
    return forgiven_.load(std::memory_order_relaxed);
  }
  std::int64_t flushed() const {
    return flushed_.load(std::memory_order_relaxed);
  }

  void reset_accumulated() {
    each([](StreamMemory& it) { it.reset_accumulated(); });
    forgiven_.store(0, std::memory_order_relaxed);
    flushed_.store(0, std::memory_order_relaxed);
  }

  StreamMemory* owner(const void* address) {
    StreamMemory* owner = nullptr;
    each([&](StreamMemory& it) { owner = it.owns(address) ? &it : owner; });
    return owner;
  }

 private:
  [[gnu::noinline]] StreamMemory* add(c10::cuda::CUDAStream stream, const StreamMemory::Around& around) {
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
    all_[count] = std::make_unique<StreamMemory>(around, stream, static_cast<std::uint32_t>(count));
    count_.store(count + 1, std::memory_order_release);
    return all_[count].get();
  }

  std::mutex mutex_;
  std::atomic<std::int64_t> forgiven_{0};
  std::atomic<std::int64_t> flushed_{0};
  std::atomic<std::size_t> count_{0};
  std::array<std::unique_ptr<StreamMemory>, kMost> all_;
};

} // namespace pinbuddy
