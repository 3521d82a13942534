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
  // found busy, or all were asked; whom another thread asks is passed by. What `completed` throws goes
  // through, once: as with upstream, an event that cannot be asked goes, and its block waits for good.
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
    // Whether anything came since it was last found empty.
    bool used = true;
    // Whether a thread is asking its oldest event: no other does, so that they stay in order.
    bool asked = false;
  };
  using Queues = std::list<Queue>;

  // A queue's oldest waiter is being asked, outside the lock: neither goes meanwhile.
  struct Turn {
    Queues::iterator queue;
    Waiter& waiter;
  };

  std::size_t stream_count();

  // The oldest waiter of the first queue in line that has any and is not asked; counts those before it
  // off `left`, and lets those go that were empty the last time too. Nothing once `left` is 0.
  std::optional<Turn> begin_turn(std::size_t& left);

  // Where it is `over`, the waiter goes; else its queue goes to the end of the line.
  void end_turn(Turn turn, bool over);

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
