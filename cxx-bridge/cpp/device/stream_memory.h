// The planned memory of one stream of one device: regions from the allocator below, and blocks in their slots.
//
// Rust has the blocks and says what is done (src/device/stream.rs); here CUDA and the allocator below are called. Knows neither
// statistics of others nor graphs: the gate says whether anything is captured.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "../event_pool.h"
#include "../lock.h"
#include "captures.h"
#include "device_history.h"
#include "peaks.h"
#include "pinbuddy-bridge/src/lib.rs.h"

namespace pinbuddy {

// From the lowest region that there ever was to the highest. Grows only, so that its ends need not be read together.
class Span {
 public:
  // Before anything of the region is handed out.
  void widen(std::size_t begin, std::size_t bytes) {
    std::size_t low = low_.load(std::memory_order_relaxed);
    while (begin < low && !low_.compare_exchange_weak(low, begin)) {
    }
    std::size_t high = high_.load(std::memory_order_relaxed);
    while (begin + bytes > high && !high_.compare_exchange_weak(high, begin + bytes)) {
    }
  }

  bool holds(const void* address) const {
    const auto at = reinterpret_cast<std::size_t>(address);
    return at >= low_.load(std::memory_order_relaxed) && at < high_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::size_t> low_{std::numeric_limits<std::size_t>::max()};
  std::atomic<std::size_t> high_{0};
};

// What all streams work with. `whole` answers for a device with its plans.
struct Around {
  c10::cuda::CUDACachingAllocator::CUDAAllocator& below;
  c10::cuda::CUDACachingAllocator::CUDAAllocator& whole;
  DeviceHistory& history;
  Span& span;
  EventGate& events;
};

class StreamMemory {
 public:
  // What to do about events that are not complete.
  enum class Settle : std::uint8_t { kAsk, kWait };

  // `number`: how many of the device's streams were asked for planned memory before this one. `peaks` are the device's.
  StreamMemory(const Around& around, Peaks& peaks, c10::cuda::CUDAStream stream, std::uint32_t number);

  c10::cuda::CUDAStream stream() const {
    return stream_;
  }

  // A planned place, or what the plan leaves idle; none if its address is 0. `bytes` is not 0. May take regions from the
  // allocator below; `releases`: that one gives back its cache where there is no room. `borrows`: what is idle in the regions that
  // there are, whoever wants it next, for a request that finds no other memory (src/device/stream.rs).
  Place ask(std::size_t bytes, bool borrows, bool releases);

  // The region that holds this address; null if none of its own does.
  void* region_of(const void* address) const {
    for (const Region& region : regions_) {
      const auto base = region.base.load(std::memory_order_acquire);
      if (reinterpret_cast<std::size_t>(address) - base < region.bytes && base != 0) {
        return reinterpret_cast<void*>(base);
      }
    }
    return nullptr;
  }

  // The block that begins at this address is freed; how long it was.
  std::size_t free(void* address);

  // The block that begins at this address, for the history; how much was asked for it is 0 if there is none.
  DeviceHistory::Block block_at(const void* address);

  // Another stream uses the block that begins at this address.
  void use(void* address, c10::cuda::CUDAStream stream);

  // Records events that had to wait for the end of a capture, and asks which are complete, or waits until all are. Nothing during a
  // capture.
  void settle(Settle how);

  // Gives back regions in which nothing lies. Returns whether there were any.
  bool give_back(GiveBack why);

  const StreamPlan& plan() const {
    return plan_;
  }

  // Whether there is a plan for it.
  bool is_planned() const {
    return !regions_.empty();
  }

  // Its plan is not used any more, and what is idle given back. Returns whether it was used.
  bool drop() {
    const bool was_used = !plan_.is_dropped();
    give_back(GiveBack::ForGood);
    return was_used;
  }

 private:
  struct Region {
    std::size_t bytes = 0;
    std::atomic<std::size_t> base{0};
  };

  // Before planned bytes go: keeps the peaks if there may be a new one until then.
  void keep_peaks() {
    if (C10_UNLIKELY(tally_.is_due(0))) {
      read_peaks();
    }
  }
  // Keeps the peaks, which begin anew.
  [[gnu::noinline]] void read_peaks();
  void reserve(bool releases);
  void take_region(std::size_t index);
  void record();
  void settle_all(Settle how);
  void note_completed(std::size_t address, std::size_t requested);
  // Regions that are its own no more.
  void give_back(const rust::Vec<IdleRegion>& regions);

  const Around& around_;
  Peaks& peaks_;
  const Tally& tally_;
  const c10::cuda::CUDAStream stream_;
  const cudaStream_t handle_;
  const StreamPlan& plan_;
  std::vector<Region> regions_;
  // How regions are freed: as when they were taken.
  std::atomic<c10::DeleterFnPtr> delete_below_{nullptr};

  // Held where freed blocks' events are recorded, and asked for: who needs all that can be had waits for another thread that is at
  // it. Taken in the order `settling_`, `recording_`, gate. No `Lock`s, since CUDA is called under them; whoever waits for one waits
  // for nobody but the device.
  std::mutex settling_;
  std::mutex recording_;
};

} // namespace pinbuddy
