// Freed blocks that are cached whole for the next request of exactly their size.
//
// Most of the cost of stock's pair of allocate and free is in its lists, and most of the engine's in
// cutting and merging; programs ask for the same sizes again and again. So a freed block stays as it
// is, with its block object, and its owner (the engine, or upstream's lists) counts it as handed out.
// All caches are flushed before idle memory is needed or reported.
//
// A thread takes from its own cache, and a block returns to the cache of the thread that it was taken
// for, whichever thread frees it. So threads contend only if one frees what another allocates, or finds
// nothing in its own cache. Where memory has several homes, a thread has a cache for each of them, and a
// cached block is taken by requests of the home for which it was cut, wherever it lies. Invariants: a cached
// block has no user and no event outstanding; the blocks of a flush are with their owner before the next
// flush begins. Knows neither the engine nor upstream's lists.
#pragma once

#include <algorithm>
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
  // For memory that can have so many homes: a power of two.
  explicit BlockCache(std::size_t homes = 1) : homes_(std::min(homes, kCaches)) {}

  // A cached block of exactly `bytes` bytes, from this thread's cache or else from any other; null if there
  // is none.
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

  // As `take`, for a request of this home. If this thread's cache has none, sets `again` if the thread already missed on this size,
  // which makes caching worth while, and notes the miss; with many sizes `again` is sometimes wrong. A size
  // that is new to this thread is looked for in its own cache only.
  Block* take_or_note(std::size_t bytes, std::size_t home, bool& again) {
    const std::size_t mine = own() + home;
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

  // Assigns a new block, which was cut for `home`, to this thread's cache; `cacheable` says whether it is cached once it is
  // freed.
  void assign(Block* block, std::size_t home, bool cacheable) const;

  // Caches a block whose user and streams are done with it; false if it may not be cached.
  [[nodiscard]] bool put(Block* block) {
    if (C10_UNLIKELY(!block->cacheable)) {
      return false;
    }
    ThreadCache& cache = caches_[block->cache];
    SpinLocked locked(cache.lock);
    // Under the lock: a thread that flushed this cache has paused caching before.
    if (C10_UNLIKELY(paused_.load(std::memory_order_relaxed) != 0)) {
      return false;
    }
    cache.put(block);
    return true;
  }

  // While one exists nothing is cached: a block that a flush or `take_last` did not find is with a user or
  // with its owner.
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

  // Takes all cached blocks; the caller releases them to their owner at once, with calls of `next` until
  // null. One flush at a time: once the caller's begins, no other holds blocks, so a lack of room is real.
  // No driver call while it exists (I5).
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
    // The next block, of each size the oldest first; null after the last.
    Block* next();

   private:
    BlockCache& cache_;
    bool alone_;
    Amount reused_{};
    Block* chain_ = nullptr;
  };

  // Returns once no flush that began before holds blocks.
  void wait_for_flushes();

  // As `take`, while caching is paused: takes every lock, so that no block is overlooked.
  Block* take_last(std::size_t bytes);

  // Bytes of all cached blocks, and of those of a home; read without a lock.
  std::size_t bytes() const;
  std::size_t bytes_at(std::size_t home) const;

  // Cached blocks of a home whose sizes have the power of two of `bytes`, read without a lock.
  std::size_t alike(std::size_t bytes, std::size_t home) const;

  // Requests that cached blocks have served since the last flush; takes every lock, one after another.
  std::size_t served();

  // Whether anything is cached, while caching is paused: takes every lock, so that no block is overlooked.
  bool any_left();

  // Called for a new size: whether to flush, so that cached memory merges with idle memory. True once there
  // were four new sizes for each cached block since the last flush: so sizes that never repeat find room, and
  // sizes that do are seldom flushed.
  bool is_worth_a_flush();

  // Nothing is cached from now on; cached blocks stay until they are taken.
  void end();

  // Forgets the sizes that threads have asked for: the program may have changed.
  void forget();

  // Called around a fork: the child finds every lock free and no flush under way.
  void before_fork();
  void after_fork(bool in_child);

 private:
  static constexpr std::size_t kCaches = 16;
  static constexpr std::size_t kNewsABlock = 4;

  // A flush takes a fraction of a millisecond, but releasing blocks may wait for Python's lock. A thread
  // that holds that lock must not wait for the flush for ever, so it goes on after this time.
  static constexpr std::chrono::seconds kPatience{1};

  // The cache of this thread for the first home; those for the others follow.
  std::size_t own() const {
    const std::size_t thread = C10_LIKELY(number != 0) ? number - 1 : number_thread();
    return C10_LIKELY(homes_ == 1) ? thread : thread * homes_ % kCaches;
  }
  static std::size_t number_thread();

  std::size_t in_use() const;
  std::span<ThreadCache> caches_in_use() {
    return {caches_.data(), in_use()};
  }
  std::span<const ThreadCache> caches_in_use() const {
    return {caches_.data(), in_use()};
  }
  // What `of` says of every `step`-th cache in use; the locks are not taken.
  template <typename Of>
  std::size_t sum(Of of, std::size_t first, std::size_t step) const;
  Block* take_elsewhere(std::size_t bytes, std::size_t mine);
  bool begin_flush();
  void end_flush(bool alone);

  // One more than the index of the thread's cache, were there one home: 0 needs no constructor in each thread.
  static constinit inline thread_local std::size_t number = 0;

  const std::size_t homes_;
  std::atomic<bool> ended_{false};
  std::atomic<int> paused_{0};
  std::atomic<int> flushes_{0};
  // New sizes since the last flush.
  std::atomic<std::size_t> news_{0};
  std::timed_mutex flushing_;
  // Whether the fork under way has `flushing_`; it is the thread's that holds the locks of all caches.
  bool fork_alone_ = false;
  std::array<ThreadCache, kCaches> caches_;
};

} // namespace pinbuddy
