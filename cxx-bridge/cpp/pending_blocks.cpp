#include "pending_blocks.h"

#include "lock.h"

namespace pinbuddy {

void PendingBlocks::push(c10::cuda::CUDAStream stream, PooledEvent event, Block* block) {
  // Counted first, so that the count is never below what the queues hold.
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

std::optional<PendingBlocks::Waiter> PendingBlocks::pop(std::size_t& left) {
  Lock guard(mutex_);
  for (; left > 0 && !queues_.empty(); --left) {
    const auto first = queues_.begin();
    if (!first->waiters.empty()) {
      std::optional<Waiter> waiter(std::move(first->waiters.front()));
      first->waiters.pop_front();
      return waiter;
    }
    if (std::exchange(first->used, false)) {
      queues_.splice(queues_.end(), queues_, first);
    } else {
      by_stream_.erase(first->stream);
      queues_.erase(first);
    }
  }
  return std::nullopt;
}

void PendingBlocks::put_back(Waiter waiter) {
  Lock guard(mutex_);
  const auto queue = queue_of(waiter.stream);
  queue->waiters.push_front(std::move(waiter));
  queue->used = true;
  queues_.splice(queues_.end(), queues_, queue);
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
