// Blocks that their user has freed and that streams may still be reading or writing.
//
// One queue per stream, since a stream's events complete in order: a stream that is stuck delays
// its own blocks and no others. Invariants: a block leaves only when each of its events has
// completed (I4); CUDA is never asked under a lock (I5).
#pragma once

#include <c10/cuda/CUDAStream.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "block.h"
#include "event_pool.h"

namespace pinbuddy {

class PendingBlocks {
 public:
  // Has `block` wait for one more event, which was recorded on `stream`.
  void push(c10::cuda::CUDAStream stream, PooledEvent event, Block* block);

  // Whether nothing waits: one relaxed load.
  bool empty() const {
    return waiting_.load(std::memory_order_relaxed) == 0;
  }

  // Asks `completed(event)` of each stream's events, oldest first, up to the stream's first that is
  // not, and calls `done(block)` for each one that is. What `completed` throws goes through, and
  // the event that it was asked of stays.
  template <typename Completed, typename Done>
  void reap(Completed completed, Done done) {
    const std::size_t streams = stream_count();
    for (std::size_t i = 0; i < streams; ++i) {
      Queue& queue = queue_at(i);
      while (auto waiter = queue.pop()) {
        bool ready = false;
        try {
          ready = completed(waiter->first);
        } catch (...) {
          queue.put_back(std::move(*waiter));
          throw;
        }
        if (!ready) {
          queue.put_back(std::move(*waiter));
          break;
        }
        waiting_.fetch_sub(1, std::memory_order_relaxed);
        done(waiter->second);
      }
    }
  }

 private:
  using Waiter = std::pair<PooledEvent, Block*>;

  class Queue {
   public:
    explicit Queue(c10::cuda::CUDAStream stream) : stream_(stream) {}

    c10::cuda::CUDAStream stream() const {
      return stream_;
    }
    void push(Waiter waiter);
    void put_back(Waiter waiter);
    std::optional<Waiter> pop();

   private:
    const c10::cuda::CUDAStream stream_;
    std::mutex mutex_;
    std::deque<Waiter> waiters_;
  };

  std::size_t stream_count();
  Queue& queue_at(std::size_t index);
  Queue& queue_of(c10::cuda::CUDAStream stream);

  std::atomic<std::size_t> waiting_{0};

  // Guards the list of queues, which only grows: a process uses a handful of streams. A deque keeps
  // each queue where it is.
  std::mutex queues_mutex_;
  std::deque<Queue> queues_;
};

} // namespace pinbuddy
