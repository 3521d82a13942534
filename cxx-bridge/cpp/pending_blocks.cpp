#include "pending_blocks.h"

#include "lock.h"

namespace pinbuddy {

void PendingBlocks::push(c10::cuda::CUDAStream stream, PooledEvent event, Block* block) {
  // Counted first, so that the count is never below what the queues hold.
  waiting_.fetch_add(1, std::memory_order_relaxed);
  queue_of(stream).push({std::move(event), block});
}

std::size_t PendingBlocks::stream_count() {
  Lock guard(queues_mutex_);
  return queues_.size();
}

PendingBlocks::Queue& PendingBlocks::queue_at(std::size_t index) {
  Lock guard(queues_mutex_);
  return queues_[index];
}

PendingBlocks::Queue& PendingBlocks::queue_of(c10::cuda::CUDAStream stream) {
  Lock guard(queues_mutex_);
  for (auto& queue : queues_) {
    if (queue.stream() == stream) {
      return queue;
    }
  }
  return queues_.emplace_back(stream);
}

void PendingBlocks::Queue::push(Waiter waiter) {
  Lock guard(mutex_);
  waiters_.push_back(std::move(waiter));
}

void PendingBlocks::Queue::put_back(Waiter waiter) {
  Lock guard(mutex_);
  waiters_.push_front(std::move(waiter));
}

std::optional<PendingBlocks::Waiter> PendingBlocks::Queue::pop() {
  Lock guard(mutex_);
  if (waiters_.empty()) {
    return std::nullopt;
  }
  std::optional<Waiter> waiter(std::move(waiters_.front()));
  waiters_.pop_front();
  return waiter;
}

} // namespace pinbuddy
