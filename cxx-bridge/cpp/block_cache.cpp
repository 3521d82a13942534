#include "block_cache.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

namespace pinbuddy {
namespace {

// Threads that have a number. The first ones have caches of their own; later ones share.
std::atomic<std::size_t> threads{0};

} // namespace

std::size_t BlockCache::number_thread() {
  number = threads.fetch_add(1, std::memory_order_relaxed) % kCaches + 1;
  return number - 1;
}

std::size_t BlockCache::in_use() const {
  // Threads that register after this load count as arriving after the call.
  // Blocks of threads without a number are in the first caches.
  return std::clamp(threads.load(std::memory_order_relaxed) * homes_, homes_, kCaches);
}

void BlockCache::assign(Block* block, std::size_t home, bool cacheable) const {
  block->cache = static_cast<std::uint16_t>(own() + home);
  block->cacheable = cacheable;
}

Block* BlockCache::take_elsewhere(std::size_t bytes, std::size_t mine) {
  const auto caches = caches_in_use();
  for (std::size_t at = mine % homes_; at < caches.size(); at += homes_) {
    ThreadCache& cache = caches[at];
    if (at == mine || !cache.may_have(bytes)) {
      continue;
    }
    SpinLocked locked(cache.lock);
    if (Block* block = cache.take(bytes)) {
      block->cache = static_cast<std::uint16_t>(mine);
      return block;
    }
  }
  return nullptr;
}

Block* BlockCache::take_last(std::size_t bytes) {
  const std::size_t mine = own();
  for (ThreadCache& cache : caches_in_use()) {
    SpinLocked locked(cache.lock);
    if (Block* block = cache.take(bytes)) {
      block->cache = static_cast<std::uint16_t>(mine);
      return block;
    }
  }
  return nullptr;
}

template <typename Of>
std::size_t BlockCache::sum(Of of, std::size_t first, std::size_t step) const {
  std::size_t sum = 0;
  const auto caches = caches_in_use();
  for (std::size_t at = first; at < caches.size(); at += step) {
    sum += of(caches[at]);
  }
  return sum;
}

std::size_t BlockCache::bytes() const {
  return sum(std::mem_fn(&ThreadCache::bytes), 0, 1);
}

std::size_t BlockCache::bytes_at(std::size_t home) const {
  return sum(std::mem_fn(&ThreadCache::bytes), home, homes_);
}

std::size_t BlockCache::alike(std::size_t bytes, std::size_t home) const {
  return sum([bytes](const ThreadCache& it) { return it.alike(bytes); }, home, homes_);
}

std::size_t BlockCache::served() {
  std::size_t served = 0;
  for (ThreadCache& cache : caches_in_use()) {
    SpinLocked locked(cache.lock);
    served += cache.reused().blocks;
  }
  return served;
}

bool BlockCache::any_left() {
  const auto caches = caches_in_use();
  return std::any_of(caches.begin(), caches.end(), [](ThreadCache& cache) {
    SpinLocked locked(cache.lock);
    return cache.bytes() != 0;
  });
}

bool BlockCache::is_worth_a_flush() {
  const std::size_t news = news_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (bytes() == 0) {
    return false;
  }
  const std::size_t blocks = sum(std::mem_fn(&ThreadCache::blocks), 0, 1);
  return blocks != 0 && news >= kNewsABlock * blocks;
}

BlockCache::Flush::Flush(BlockCache& cache) : cache_(cache), alone_(cache.begin_flush()) {
  ThreadCache::Bins tops;
  for (ThreadCache& one : cache_.caches_in_use()) {
    std::size_t count = 0;
    {
      SpinLocked locked(one.lock);
      reused_ += one.take_reused();
      one.clear([&](Block* top) { tops[count++] = top; });
    }
    // Each stack is reversed onto the chain: of each size the oldest block comes first.
    for (Block* top : std::span(tops.data(), count)) {
      while (top != nullptr) {
        Block* block = top;
        top = top->next_size;
        while (block != nullptr) {
          Block* below = block->next_cached;
          block->next_cached = chain_;
          chain_ = block;
          block = below;
        }
      }
    }
  }
}

BlockCache::Flush::~Flush() {
  cache_.end_flush(alone_);
}

Block* BlockCache::Flush::next() {
  return chain_ == nullptr ? nullptr : std::exchange(chain_, chain_->next_cached);
}

bool BlockCache::begin_flush() {
  const bool alone = flushing_.try_lock() || flushing_.try_lock_for(kPatience);
  // Before any cache is cleared, so that every thread that finds one empty sees it.
  flushes_.fetch_add(1, std::memory_order_relaxed);
  news_.store(0, std::memory_order_relaxed);
  count_held(1);
  return alone;
}

void BlockCache::end_flush(bool alone) {
  count_held(-1);
  flushes_.fetch_sub(1, std::memory_order_release);
  if (alone) {
    flushing_.unlock();
  }
}

void BlockCache::wait_for_flushes() {
  if (C10_LIKELY(flushes_.load(std::memory_order_acquire) == 0)) {
    return;
  }
  if (flushing_.try_lock_for(kPatience)) {
    flushing_.unlock();
  }
}

void BlockCache::end() {
  if (!ended_.exchange(true)) {
    paused_.fetch_add(1, std::memory_order_relaxed);
  }
}

void BlockCache::forget() {
  for (ThreadCache& cache : caches_in_use()) {
    SpinLocked locked(cache.lock);
    cache.forget();
  }
}

void BlockCache::before_fork() {
  const bool alone = begin_flush();
  for (ThreadCache& cache : caches_) {
    cache.lock.lock();
  }
  // Under these locks: handlers of two forks may run at once.
  fork_alone_ = alone;
}

void BlockCache::after_fork(bool in_child) {
  bool alone = fork_alone_;
  if (in_child) {
    // Threads that paused caching, flushed or waited for a flush do not exist in the child.
    std::construct_at(&flushing_);
    alone = false;
    paused_.store(ended_.load() ? 1 : 0, std::memory_order_relaxed);
    flushes_.store(1, std::memory_order_relaxed);
  }
  for (ThreadCache& cache : caches_) {
    cache.lock.unlock();
  }
  end_flush(alone);
}

} // namespace pinbuddy
