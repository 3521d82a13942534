// The planned memory of one stream of one device: regions from the allocator below, and blocks in their slots.
//
// A block that only its own stream used is free at once when it is freed, since the stream's work is in order. One that
// other streams used waits for events on them. The plan's bitmap says which places are free, so nothing here can hand
// out a place twice. Knows neither statistics of others nor graphs: the gate says whether anything is captured.
//
// Invariant (I5): the allocator below and CUDA are never called under the lock.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/flat_hash_map.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../event_pool.h"
#include "../lock.h"
#include "../upstream.h"
#include "counted.h"
#include "device_history.h"
#include "device_trace.h"
#include "event_gate.h"
#include "moves.h"
#include "peaks.h"
#include "pinbuddy-bridge/src/lib.rs.h"
#include "reach.h"

namespace pinbuddy {

class StreamMemory {
 public:
  using Below = c10::cuda::CUDACachingAllocator::CUDAAllocator;

  // What to do about events that are not complete.
  enum class Settle : std::uint8_t { kAsk, kWait };

  // Why regions in which nothing lies are given back.
  enum class GiveBack : std::uint8_t {
    // The cache is emptied: they are taken again with the next request.
    kCleared,
    // A request has no room: whoever it is for needs them for a while.
    kShort,
    // The same, and that was not enough: until the cache is emptied, or for some iterations, the plan is not in force, and the others
    // are given back once their last block is freed.
    kAside,
    // The plan is not used any more: the same for ever.
    kForGood,
  };

  // A block, for snapshots.
  struct Shown {
    std::size_t address = 0;
    std::size_t bytes = 0;
    std::size_t requested = 0;
    // Else other streams still use it.
    bool live = false;
  };

  // What a request gets: the block's length is the request's, rounded as PyTorch's allocator rounds.
  struct Given {
    void* address = nullptr;
    std::size_t bytes = 0;
  };

  // What it works with. `whole` answers for the device with its plans; `peaks` are the device's; `trace` may be null.
  struct Around {
    Below& below;
    Below& whole;
    DeviceHistory& history;
    Span& span;
    EventGate& events;
    Moves& moves;
    Peaks& peaks;
    const Passed& passed;
    DeviceTrace* trace;
  };

  // `number`: how many of the device's streams were asked for planned memory before this one.
  StreamMemory(const Around& around, c10::cuda::CUDAStream stream, std::uint32_t number);

  c10::cuda::CUDAStream stream() const {
    return stream_;
  }

  // A planned place, or what the plan leaves idle; null if there is none. `bytes` is not 0. May take the regions from the
  // allocator below; `releases`: that one gives back its cache where there is no room.
  Given allocate(std::size_t bytes, bool releases);

  // The same of what is idle in the regions that there are, whoever wants it next: for a request that finds no other memory. The
  // next requests that `allocate` is asked for, as many as an iteration has, get such memory, too, before the allocator below is
  // asked, which would give back its cache for each of them.
  Given borrow(std::size_t bytes);

  // Whether a block of its own begins at this address or an address within it.
  bool owns(const void* address) const {
    for (const Region& region : regions_) {
      const auto base = region.base.load(std::memory_order_acquire);
      if (reinterpret_cast<std::size_t>(address) - base < region.bytes && base != 0) {
        return true;
      }
    }
    return false;
  }

  // The region that holds an address of its own.
  void* region_of(const void* address) const;

  // The block that begins at this address is freed; how long it was.
  std::size_t free(void* address);

  // The block that begins at this address, for the history; how much was asked for it is 0 if there is none.
  DeviceHistory::Block block_at(const void* address);

  // Another stream uses the block that begins at this address.
  void use(void* address, c10::cuda::CUDAStream stream);

  // Records events that had to wait for the end of a capture, and asks which are complete, or waits until all are. Nothing during a
  // capture.
  void settle(Settle how);

  // Gives back regions in which nothing lies. Returns whether there were any; of a plan that is set aside, whether it was in force.
  bool give_back(GiveBack why);

  // An iteration is over.
  void iteration();

  // Bytes taken from the allocator below, as it counts them.
  std::size_t reserved() const;

  // Whether there is a plan for it.
  bool is_planned() const {
    return !regions_.empty();
  }

  Counted counted();
  void reset_peaks();
  void reset_accumulated();

  // Blocks by address.
  std::vector<Shown> shown();

  StreamCounts counts();

 private:
  enum class State : std::uint8_t { kCold, kReserving, kReady, kAside, kDropped };

  // Whether regions are given back as soon as nothing lies in them.
  bool leaves() const {
    return state_.load(std::memory_order_relaxed) >= State::kAside;
  }

  struct Region {
    std::size_t bytes = 0;
    // How long the block of the allocator below is: not shorter.
    std::atomic<std::size_t> held{0};
    std::atomic<std::size_t> base{0};
  };

  // A region that lies in no plan any more.
  struct Idle {
    void* base;
    std::size_t bytes;
    std::size_t held;
  };

  struct Block {
    Place place;
    std::size_t requested = 0;
    // Other streams.
    std::vector<c10::cuda::CUDAStream> uses;
  };

  struct Pending {
    Place place;
    std::size_t requested = 0;
    std::vector<std::pair<c10::cuda::CUDAStream, PooledEvent>> events;
  };

  // Under the lock. Inline, as it is a good part of what a request takes.
  C10_ALWAYS_INLINE Given hand_out(Block& block, std::size_t rounded) {
    const Given given{reinterpret_cast<void*>(block.place.address), block.place.bytes};
    counted_.came(given.bytes, block.requested);
    const auto length = static_cast<std::int64_t>(given.bytes);
    peaks_.high_water().add({length, length, static_cast<std::int64_t>(block.requested)});
    if (C10_UNLIKELY(trace_ != nullptr)) {
      trace_->request(block.place.address, rounded, handle_, /*planless=*/false);
    }
    blocks_.emplace(given.address, std::move(block));
    return given;
  }
  // Before up to `more` planned bytes come, or some go: keeps the peaks if there may be a new one until then.
  void keep_peaks(std::size_t more) {
    if (C10_UNLIKELY(peaks_.high_water().is_due(passed_.bytes(), more))) {
      read_peaks();
    }
  }
  // Keeps the peaks, which begin anew.
  [[gnu::noinline]] void read_peaks();
  void reserve(bool releases);
  void take_region(std::size_t index);
  std::string lacking();
  void refused(const std::string& why, const Tries& tries, bool releases);
  bool waits();
  // Under the lock.
  std::size_t requests_of_an_iteration() const;
  // Memory was short for so many times before: regions are left for a while. Under the lock.
  void wait_after(std::uint64_t times);
  // Whether a request is among so many that are left. Two threads may count as one.
  static bool counts_down(std::atomic<std::size_t>& left) {
    const std::size_t count = left.load(std::memory_order_relaxed);
    if (C10_UNLIKELY(count > 0)) {
      left.store(count - 1, std::memory_order_relaxed);
    }
    return count > 0;
  }
  void record();
  // Regions in which nothing lies; they are the caller's, who gives them back. Under the lock.
  std::vector<Idle> take_idle();
  void finish(const Place& place, std::size_t requested);
  void give_back(const std::vector<Idle>& regions);
  void tell_of_region(void* base, std::int64_t bytes);

  Below& below_;
  Below& whole_;
  DeviceHistory& history_;
  Span& span_;
  EventGate& events_;
  Moves& moves_;
  Peaks& peaks_;
  const Passed& passed_;
  DeviceTrace* const trace_;
  const c10::cuda::CUDAStream stream_;
  const cudaStream_t handle_;
  const std::uint32_t number_;
  // Under the lock from the constructor on.
  rust::Box<StreamPlan> plan_;
  // What the process must be able to have.
  const std::uint64_t needed_;
  std::vector<Region> regions_;
  // Changed under the lock.
  std::atomic<State> state_{State::kCold};
  // Memory was short: so many requests are left to the allocator below before the regions are taken again.
  std::atomic<std::size_t> wait_{0};
  // How regions are freed: as when they were taken.
  std::atomic<c10::DeleterFnPtr> delete_below_{nullptr};
  // A request got memory here that was nowhere else: so do so many that follow.
  std::atomic<std::size_t> borrows_{0};
  std::atomic<bool> unsettled_{false};

  // Held where freed blocks are on their way from `deferred_` to `pending_`, and from there to their end: who needs all that can
  // be had waits for those that another thread has in hand. Taken in the order `settling_`, `recording_`, gate. No `Lock`s, since
  // CUDA is called under them; whoever waits for one waits for nobody but the device.
  std::mutex settling_;
  std::mutex recording_;

  std::mutex mutex_;
  ska::flat_hash_map<void*, Block> blocks_;
  // Freed during a capture: their events are recorded after it.
  std::vector<Block> deferred_;
  std::vector<Pending> pending_;
  Counted counted_;
  // How often regions were given back since memory was short, and how often the plan was set aside.
  std::uint64_t given_back_ = 0;
  std::uint64_t set_aside_ = 0;
  // Another thread dropped the plan while regions were taken.
  bool drop_ = false;
};

} // namespace pinbuddy
