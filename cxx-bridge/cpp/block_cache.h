// Freed blocks that are cached whole for the next request of exactly their size.
//
// Taking a block out of a list and putting it back is most of what stock's pair costs, and cutting
// and merging most of the engine's; programs ask for the same sizes again and again. So a freed block
// first stays as it is, with its block object, and whoever owns the memory still counts it as handed
// out. Whoever looks at what is idle, or needs it, flushes all caches first.
//
// A thread takes from a cache of its own, and a block goes back to the cache of the thread that it
// was taken for, whichever thread frees it: so threads meet only where one frees what another
// allocates, or finds nothing in its own cache. Invariants: a cached block has no user and no event
// outstanding; what a flush took is with the owner of the memory before the next flush begins. Knows
// neither the engine nor upstream's lists.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <span>

#include "block.h"
#include "lock.h"
#include "thread_cache.h"

namespace pinbuddy {

class BlockCache {
 public:
  // A cached block of exactly `bytes` bytes, from this thread's cache or else from any other; null
  // where there is none.
  Block* take(std::size_t bytes) {
    const std::size_t mine = own();
    ThreadCache& cache = caches_[mine];
    {
      SpinLocked locked(cache.lock);
      if (Block* block = cache.take(bytes); C10_LIKELY(block != nullptr)) {
        return block;
      }
    }
    return take_elsewhere(bytes, mine);
  }

  // As `take`; where it finds none, whether this thread has asked before for `bytes` bytes that
  // nothing cached was there for: then it will again, and caching is worth while. Remembers it; for
  // many sizes that is sometimes wrong. A size that is new to this thread is looked for in its own
  // cache only.
  Block* take_or_note(std::size_t bytes, bool& again) {
    const std::size_t mine = own();
    ThreadCache& cache = caches_[mine];
    {
      SpinLocked locked(cache.lock);
      if (Block* block = cache.take(bytes); C10_LIKELY(block != nullptr)) {
        return block;
      }
      again = cache.ask(bytes);
    }
    return again ? take_elsewhere(bytes, mine) : nullptr;
  }

  // A block that was not cached before is this thread's, and to be cached once it is freed, or not: a
  // size that nobody asks for again is not worth a place.
  static void assign(Block* block, bool cacheable);

  // Its user has freed a block, and streams are done with it: caches it; false where it is not to be
  // cached.
  [[nodiscard]] bool put(Block* block) {
    if (C10_UNLIKELY(!block->cacheable)) {
      return false;
    }
    ThreadCache& cache = caches_[block->cache];
    SpinLocked locked(cache.lock);
    // Under the lock: who flushed this cache before has paused caching first.
    if (C10_UNLIKELY(paused_.load(std::memory_order_relaxed) != 0)) {
      return false;
    }
    cache.put(block);
    return true;
  }

  // While one lives nothing is cached, so that what a flush or `take_last` did not find is with a user
  // or with the owner of the memory.
  class Paused {
   public:
    explicit Paused(BlockCache& cache) : cache_(cache) {
      cache_.paused_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Paused() {
      cache_.paused_.fetch_sub(1, std::memory_order_relaxed);
    }
    Paused(const Paused&) = delete;
    Paused& operator=(const Paused&) = delete;

   private:
    BlockCache& cache_;
  };

  // All that was cached, in the hand of who releases it to the owner of the memory: with as many calls
  // of `next` as it takes, and before anything else. One at a time: who has come past another's
  // finds nothing in anybody's hand, and so may conclude that there is no room. No driver call while it
  // lives (I5).
  class Flush {
   public:
    explicit Flush(BlockCache& cache);
    ~Flush();
    Flush(const Flush&) = delete;
    Flush& operator=(const Flush&) = delete;

    // Requests that cached blocks have served since the last flush.
    const Amount& reused() const {
      return reused_;
    }
    // One block after the other, of each size the oldest first; null after the last.
    Block* next();

   private:
    BlockCache& cache_;
    bool alone_;
    Amount reused_{};
    Block* chain_ = nullptr;
  };

  // Returns once nothing is in the hand of a flush that began before.
  void wait_for_flushes();

  // As `take`, while caching is paused: takes every lock, so that none is overlooked.
  Block* take_last(std::size_t bytes);

  // What is cached: without a lock.
  Amount held() const;

  // Whether anything is cached, while caching is paused: takes every lock, so that nothing is
  // overlooked.
  bool any_left();

  // A size that is new is asked for while so many blocks are cached: whether a flush is worth while, so
  // that what was cached is one piece with what is idle. Sizes that never come again are placed so most
  // of the time, and those that do are seldom flushed: there were as many new ones since the last flush
  // as blocks are cached, times four.
  bool is_worth_a_flush(std::size_t blocks);

  // Nothing is cached from now on; what is cached already stays until it is taken.
  void end();

  // Forgets what was asked for: another program may come.
  void forget();

  // So that a child of a fork finds every lock open, no flush under way, and itself alone.
  void before_fork();
  void after_fork(bool in_child);

 private:
  static constexpr std::size_t kCaches = 16;
  static constexpr std::size_t kNewsABlock = 4;

  // A flush takes a fraction of a millisecond, but who releases blocks may meet Python's lock: rather
  // than wait for ever, a thread that holds that lock goes on.
  static constexpr std::chrono::seconds kPatience{1};

  // The cache of this thread.
  static std::size_t own() {
    return C10_LIKELY(number != 0) ? number - 1 : number_thread();
  }
  static std::size_t number_thread();

  static std::size_t in_use();
  std::span<ThreadCache> caches_in_use() {
    return {caches_.data(), in_use()};
  }
  std::span<const ThreadCache> caches_in_use() const {
    return {caches_.data(), in_use()};
  }
  Block* take_elsewhere(std::size_t bytes, std::size_t mine);
  bool begin_flush();
  void end_flush(bool alone);

  // One more than the cache, so that no thread has to run a constructor.
  static constinit inline thread_local std::size_t number = 0;

  std::atomic<bool> ended_{false};
  std::atomic<int> paused_{0};
  std::atomic<int> flushes_{0};
  // Sizes that were new, since the last flush.
  std::atomic<std::size_t> news_{0};
  std::timed_mutex flushing_;
  bool fork_alone_ = false;
  std::array<ThreadCache, kCaches> caches_;
};

} // namespace pinbuddy
