#include "pending_blocks.h"

#include "lock.h"

namespace pinbuddy {

void PendingBlocks::push(c10::cuda::CUDAStream stream, PooledEvent event, Block* block) {
  // Counted first, so that the count is never below the queues' contents.
  waiting_.fetch_add(1, std::memory_order_relaxed);
  Lock guard(mutex_);
  Queue& queue = *queue_of(stream);
  queue.waiters.push_back({stream, std::move(event), block});
  queue.used = true;
}

std::size_t PendingBlocks::stream_count() {
  Lock guard(mutex_);
  return queues_.size();
}

std::optional<PendingBlocks::Turn> PendingBlocks::begin_turn(std::size_t& left) {
  Lock guard(mutex_);
  for (; left > 0 && !queues_.empty(); --left) {
    const auto first = queues_.begin();
    if (!first->asked && !first->waiters.empty()) {
      first->asked = true;
      return Turn{first, first->waiters.front()};
    }
    if (first->asked || std::exchange(first->used, false)) {
      queues_.splice(queues_.end(), queues_, first);
    } else {
      by_stream_.erase(first->stream);
      queues_.erase(first);
    }
  }
  return std::nullopt;
}

void PendingBlocks::end_turn(Turn turn, bool over) {
  // Destroyed outside the lock: its event returns to a pool that has its own lock.
  std::optional<Waiter> gone;
  Lock guard(mutex_);
  turn.queue->asked = false;
  if (over) {
    gone.emplace(std::move(turn.waiter));
    turn.queue->waiters.pop_front();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  } else {
    queues_.splice(queues_.end(), queues_, turn.queue);
  }
}

PendingBlocks::Queues::iterator PendingBlocks::queue_of(c10::cuda::CUDAStream stream) {
  const auto found = by_stream_.find(stream);
  if (found != by_stream_.end()) {
    return found->second;
  }
  const auto queue = queues_.insert(queues_.end(), Queue{stream, {}});
  by_stream_.emplace(stream, queue);
  return queue;
}

} // namespace pinbuddy
