// Blocks that their user has freed and that streams may still be reading or writing.
//
// One queue per stream, since a stream's events complete in order: a stream that is stuck delays
// its own blocks and no others. Queues take turns: a request asks the first for its oldest event, and
// one whose event is not over goes to the end of the line, so that few questions a request are
// enough to see all of them. One that stays empty goes, since streams come and go. Invariants: a
// block leaves only when each of its events has completed (I4); CUDA is never asked under a lock (I5).
#pragma once

#include <c10/cuda/CUDAStream.h>
#include <c10/util/flat_hash_map.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include "block.h"
#include "event_pool.h"

namespace pinbuddy {

class PendingBlocks {
 public:
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

  // Has `block` wait for one more event, which was recorded on `stream`.
  void push(c10::cuda::CUDAStream stream, PooledEvent event, Block* block);

  // Whether nothing waits: one relaxed load.
  bool empty() const {
    return waiting_.load(std::memory_order_relaxed) == 0;
  }

  // Asks `completed(event)` of streams' events, oldest first, up to each stream's first that is not,
  // and calls `done(block)` for each one that is; goes on to the next stream until `most` of them were
  // found busy, or all were asked. What `completed` throws goes through, and the event that it was
  // asked of stays.
  template <typename Completed, typename Done>
  void reap(std::size_t most, Completed completed, Done done) {
    std::size_t left = stream_count();
    while (most > 0) {
      auto waiter = pop(left);
      if (!waiter) {
        return;
      }
      bool ready = false;
      try {
        ready = completed(waiter->event);
      } catch (...) {
        put_back(std::move(*waiter));
        throw;
      }
      if (ready) {
        waiting_.fetch_sub(1, std::memory_order_relaxed);
        done(waiter->block);
      } else {
        put_back(std::move(*waiter));
        --left;
        --most;
      }
    }
  }

 private:
  struct Waiter {
    c10::cuda::CUDAStream stream;
    PooledEvent event;
    Block* block;
  };

  struct Queue {
    c10::cuda::CUDAStream stream;
    std::deque<Waiter> waiters;
    // Whether anything came since it was last found empty.
    bool used = true;
  };
  using Queues = std::list<Queue>;

  std::size_t stream_count();

  // The oldest waiter of the first queue in line that has any; counts those before it off `left`, and
  // lets those go that were empty the last time too. Nothing once `left` is 0.
  std::optional<Waiter> pop(std::size_t& left);

  // To the front of its queue, which goes to the end of the line.
  void put_back(Waiter waiter);

  // Under the lock.
  Queues::iterator queue_of(c10::cuda::CUDAStream stream);

  std::atomic<std::size_t> waiting_{0};

  // Guards what follows.
  std::mutex mutex_;
  // In the order of their turns.
  Queues queues_;
  ska::flat_hash_map<c10::cuda::CUDAStream, Queues::iterator> by_stream_;
};

} // namespace pinbuddy
