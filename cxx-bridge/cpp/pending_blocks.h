// Freed blocks that streams may still be reading or writing.
//
// There is one queue per stream, since a stream's events complete in order: a stuck stream delays only its
// own blocks. Queues take turns: a request queries the oldest event of the first queue, and a queue whose
// event is not complete moves to the end, so that a few queries a request reach all queues. A queue that
// stays empty is removed, since streams come and go. Invariants: a block leaves only when all its events
// are complete (I4); CUDA is never called under a lock (I5).
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

  // Queries each stream's events with `completed(event)`, oldest first, up to the first that is not
  // complete, and calls `done(block)` for each that is. Ends once `most` streams were found busy or all were
  // queried; skips streams that another thread is querying. An exception of `completed` is rethrown: as with
  // upstream, the event is dropped, and its block is never used again.
  template <typename Completed, typename Done>
  void reap(std::size_t most, Completed completed, Done done) {
    std::size_t left = stream_count();
    while (most > 0) {
      auto turn = begin_turn(left);
      if (!turn) {
        return;
      }
      bool ready = false;
      try {
        ready = completed(turn->waiter.event);
      } catch (...) {
        end_turn(*turn, /*over=*/true);
        throw;
      }
      Block* const block = turn->waiter.block;
      end_turn(*turn, ready);
      if (ready) {
        done(block);
      } else {
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
    // Whether anything was pushed since it was last found empty.
    bool used = true;
    // Whether a thread is querying its oldest event. Only one does, so that events stay in order.
    bool asked = false;
  };
  using Queues = std::list<Queue>;

  // A queue whose oldest waiter is being queried outside the lock: neither is removed meanwhile.
  struct Turn {
    Queues::iterator queue;
    Waiter& waiter;
  };

  std::size_t stream_count();

  // The oldest waiter of the first queue that has any and is not being queried. Subtracts the skipped queues
  // from `left`, and removes those that were empty the last time too. Nothing once `left` is 0.
  std::optional<Turn> begin_turn(std::size_t& left);

  // If `over`, removes the waiter; else moves its queue to the end.
  void end_turn(Turn turn, bool over);

  // Under the lock.
  Queues::iterator queue_of(c10::cuda::CUDAStream stream);

  std::atomic<std::size_t> waiting_{0};

  // Guards the fields below.
  std::mutex mutex_;
  // In the order of their turns.
  Queues queues_;
  ska::flat_hash_map<c10::cuda::CUDAStream, Queues::iterator> by_stream_;
};

} // namespace pinbuddy
