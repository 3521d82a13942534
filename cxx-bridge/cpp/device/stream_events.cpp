// The blocks of a stream's planned memory that other streams used: their places wait for events (stream_memory.h).
//
// Invariant: an error of CUDA's is thrown, and loses no block: what was taken from the lists is put back.
#include "../upstream.h"

#if PINBUDDY_TORCH_FROM(11)

#include "stream_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pinbuddy {
namespace {

// All that a list has, for as long as it lives; what is left then is put back in front.
template <class T>
class Taken {
 public:
  Taken(std::mutex& mutex, std::vector<T>& list, std::atomic<bool>& any) : mutex_(mutex), list_(list), any_(any) {
    Lock guard(mutex_);
    left.swap(list_);
  }
  ~Taken() {
    if (!left.empty()) {
      Lock guard(mutex_);
      list_.insert(list_.begin(), std::make_move_iterator(left.begin()), std::make_move_iterator(left.end()));
      // Another thread may have found nothing meanwhile.
      any_.store(true, std::memory_order_relaxed);
    }
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

  std::vector<T> left;

 private:
  std::mutex& mutex_;
  std::vector<T>& list_;
  std::atomic<bool>& any_;
};

} // namespace

void StreamMemory::use(void* address, c10::cuda::CUDAStream stream) {
  if (stream == stream_) {
    return;
  }
  Lock guard(mutex_);
  const auto found = blocks_.find(address);
  TORCH_CHECK(found != blocks_.end(), "invalid device pointer: ", address);
  auto& uses = found->second.uses;
  if (std::find(uses.begin(), uses.end(), stream) == uses.end()) {
    uses.push_back(stream);
  }
}

// The places of freed blocks wait for events on the streams that used them; during a capture, for its end first.
void StreamMemory::record() {
  const std::lock_guard turn(recording_);
  const EventGate::Pass pass(events_);
  if (!pass) {
    return;
  }
  Taken<Block> deferred(mutex_, deferred_, unsettled_);
  while (!deferred.left.empty()) {
    const Block& block = deferred.left.back();
    Pending pending;
    pending.place = block.place;
    pending.requested = block.requested;
    for (const auto& stream : block.uses) {
      pending.events.emplace_back(stream, PooledEvent::record(stream));
    }
    Lock guard(mutex_);
    pending_.push_back(std::move(pending));
    deferred.left.pop_back();
    // Since the block was freed, another thread may have settled all there was and found nothing left.
    unsettled_.store(true, std::memory_order_relaxed);
  }
}

void StreamMemory::settle(Settle how) {
  // Another thread may have all there is in hand. Who only asks comes back later; who is short of memory would find nothing, and
  // give up the plan or the request.
  std::unique_lock turn(settling_, std::defer_lock);
  keep_peaks(0);
  if (how == Settle::kWait) {
    turn.lock();
  } else if (!unsettled_.load(std::memory_order_relaxed) || !turn.try_lock()) {
    return;
  }
  record();
  std::vector<Idle> idle;
  {
    Taken<Pending> pending(mutex_, pending_, unsettled_);
    auto& all = pending.left;
    auto done = all.end();
    {
      const EventGate::Pass pass(events_);
      if (!pass) {
        return;
      }
      if (how == Settle::kWait) {
        for (const Pending& it : all) {
          std::for_each(it.events.begin(), it.events.end(), [](const auto& event) { event.second.wait(); });
        }
      }
      // Events of a stream complete in order: one that is not complete answers for those behind it.
      std::vector<c10::cuda::CUDAStream> busy;
      const auto complete = [&busy](const std::pair<c10::cuda::CUDAStream, PooledEvent>& it) {
        if (std::find(busy.begin(), busy.end(), it.first) != busy.end()) {
          return false;
        }
        if (!it.second.completed()) {
          busy.push_back(it.first);
          return false;
        }
        return true;
      };
      std::vector<bool> is_done;
      for (const Pending& it : all) {
        is_done.push_back(std::all_of(it.events.begin(), it.events.end(), complete));
      }
      std::size_t at = 0;
      done = std::stable_partition(all.begin(), all.end(), [&](const Pending&) { return !is_done[at++]; });
    }
    Lock guard(mutex_);
    std::for_each(done, all.end(), [&](const Pending& it) { finish(it.place, it.requested); });
    all.erase(done, all.end());
    unsettled_.store(!all.empty() || !pending_.empty() || !deferred_.empty(), std::memory_order_relaxed);
    if (leaves()) {
      idle = take_idle();
    }
  }
  // The allocator below may wait for Python's lock.
  turn.unlock();
  give_back(idle);
}

} // namespace pinbuddy

#endif
