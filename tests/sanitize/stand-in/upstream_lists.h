// Upstream's caching host allocator as the C++ side of the bridge sees it, in its plainest form: lists of
// rounded blocks, and events in the order in which they were recorded, behind one lock each.
//
// As upstream it records events and frees blocks under its locks, and asks events outside of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "types.h"

namespace c10::CachingAllocator {

struct Stat {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;
  std::int64_t freed = 0;

  void increase(std::int64_t by) {
    current += by;
    peak = std::max(peak, current);
    allocated += by;
  }
  void decrease(std::int64_t by) {
    current -= by;
    freed += by;
  }
};

} // namespace c10::CachingAllocator

namespace at {

using c10::kCUDA;
using c10::CachingAllocator::Stat;

struct HostStats {
  Stat allocation;
  Stat segment;
  Stat allocated_bytes;
  Stat reserved_bytes;
  std::int64_t num_host_alloc = 0;
  std::int64_t num_host_free = 0;
};

template <typename S>
struct HostBlock {
  HostBlock(std::size_t size, void* ptr) : size_(size), ptr_(ptr) {}

  std::mutex mutex_;
  std::size_t size_;
  void* ptr_;
  bool allocated_ = false;
  std::size_t event_count_ = 0;
  std::unordered_set<S> streams_;
};

class DataPtr {
 public:
  DataPtr() = default;
  DataPtr(void* data, void* context, c10::DeleterFnPtr free) : data_(data), context_(context, free) {}
  void* get() const {
    return data_;
  }
  void* get_context() const {
    return context_.get();
  }
  void clear() {
    context_.reset();
    data_ = nullptr;
  }

 private:
  void* data_ = nullptr;
  std::unique_ptr<void, c10::DeleterFnPtr> context_{nullptr, [](void*) {}};
};

struct HostAllocator {
  virtual ~HostAllocator() = default;
  virtual DataPtr allocate(std::size_t bytes) = 0;
  virtual bool record_event(void* ptr, void* context, c10::Stream stream) = 0;
  virtual void empty_cache() = 0;
  virtual HostStats get_stats() = 0;
};

inline HostAllocator* registered = nullptr;
inline void setHostAllocator(c10::DeviceType, HostAllocator* allocator, int) {
  registered = allocator;
}
inline HostAllocator* getHostAllocator(c10::DeviceType) {
  return registered;
}

template <typename S, typename E, typename B>
class CachingHostAllocatorImpl {
 public:
  virtual ~CachingHostAllocatorImpl() = default;

  virtual std::pair<void*, void*> allocate(std::size_t size) {
    if (size == 0) {
      return {nullptr, nullptr};
    }
    process_events();
    const std::size_t bytes = c10::llvm::PowerOf2Ceil(size);
    if (B* block = from_list(bytes)) {
      return {block->ptr_, block};
    }
    void* memory = nullptr;
    allocate_host_memory(bytes, &memory);
    auto* block = new B(bytes, memory);
    block->allocated_ = true;
    std::lock_guard guard(mutex_);
    blocks_.emplace(memory, block);
    counted_.segment.increase(1);
    counted_.reserved_bytes.increase(static_cast<std::int64_t>(bytes));
    counted_.num_host_alloc += 1;
    count(*block);
    return {memory, block};
  }

  virtual void free(void* context) {
    if (context == nullptr) {
      return;
    }
    auto* block = static_cast<B*>(context);
    std::optional<std::vector<E>> events;
    {
      std::lock_guard guard(block->mutex_);
      block->allocated_ = false;
      if (!block->streams_.empty()) {
        events.emplace();
        for (const S stream : block->streams_) {
          record_stream(events, stream);
        }
        block->event_count_ += events->size();
        block->streams_.clear();
      }
    }
    if (!events) {
      to_list(block);
      return;
    }
    std::lock_guard guard(events_mutex_);
    for (E& event : *events) {
      events_.emplace_back(std::move(event), block);
    }
  }

  virtual bool record_event(void* ptr, void* context, c10::Stream stream) {
    B* block = nullptr;
    {
      std::lock_guard guard(mutex_);
      const auto found = blocks_.find(ptr);
      if (found == blocks_.end() || found->second != context) {
        return false;
      }
      block = found->second;
    }
    std::lock_guard guard(block->mutex_);
    block->streams_.insert(S(stream));
    return true;
  }

  virtual void empty_cache() {
    process_events();
    std::lock_guard guard(mutex_);
    for (auto& [bytes, list] : lists_) {
      for (B* block : list) {
        blocks_.erase(block->ptr_);
        counted_.segment.decrease(1);
        counted_.reserved_bytes.decrease(static_cast<std::int64_t>(bytes));
        counted_.num_host_free += 1;
        free_block(block);
        delete block;
      }
      list.clear();
    }
  }

  virtual HostStats getStats() {
    std::lock_guard guard(mutex_);
    return counted_;
  }
  virtual void resetAccumulatedStats() {}
  virtual void resetPeakStats() {}

 protected:
  virtual void allocate_host_memory(std::size_t size, void** ptr) = 0;
  virtual void free_block(B* block) = 0;
  virtual void record_stream(std::optional<std::vector<E>>& events, S stream) = 0;
  virtual bool query_event(E& event) = 0;
  virtual bool pinned_use_background_threads() = 0;

  struct {
    std::mutex timing_mutex_;
    Stat host_alloc_time;
    Stat host_free_time;
  } stats_;

 private:
  B* from_list(std::size_t bytes) {
    std::lock_guard guard(mutex_);
    auto& list = lists_[bytes];
    if (list.empty()) {
      return nullptr;
    }
    B* block = list.back();
    list.pop_back();
    block->allocated_ = true;
    count(*block);
    return block;
  }

  void to_list(B* block) {
    std::lock_guard guard(mutex_);
    counted_.allocation.decrease(1);
    counted_.allocated_bytes.decrease(static_cast<std::int64_t>(block->size_));
    lists_[block->size_].push_back(block);
  }

  // Under the lock.
  void count(const B& block) {
    counted_.allocation.increase(1);
    counted_.allocated_bytes.increase(static_cast<std::int64_t>(block.size_));
  }

  void process_events() {
    while (true) {
      std::optional<std::pair<E, B*>> oldest;
      {
        std::lock_guard guard(events_mutex_);
        if (events_.empty()) {
          return;
        }
        oldest.emplace(std::move(events_.front()));
        events_.pop_front();
      }
      if (!query_event(oldest->first)) {
        std::lock_guard guard(events_mutex_);
        events_.push_front(std::move(*oldest));
        return;
      }
      B* block = oldest->second;
      bool last = false;
      {
        std::lock_guard guard(block->mutex_);
        last = --block->event_count_ == 0;
      }
      if (last) {
        to_list(block);
      }
    }
  }

  // Guards what follows.
  std::mutex mutex_;
  std::unordered_map<void*, B*> blocks_;
  std::map<std::size_t, std::vector<B*>> lists_;
  HostStats counted_;

  std::mutex events_mutex_;
  std::deque<std::pair<E, B*>> events_;
};

template <typename T, c10::DeleterFnPtr deleter>
struct CachingHostAllocatorInterface : HostAllocator {
  explicit CachingHostAllocatorInterface(std::unique_ptr<T> impl) : impl_(std::move(impl)) {}

  DataPtr allocate(std::size_t bytes) override {
    const auto made = impl_->allocate(bytes);
    return {made.first, made.second, deleter};
  }
  void free(void* context) {
    impl_->free(context);
  }
  bool record_event(void* ptr, void* context, c10::Stream stream) override {
    return impl_->record_event(ptr, context, stream);
  }
  void empty_cache() override {
    impl_->empty_cache();
  }
  HostStats get_stats() override {
    return impl_->getStats();
  }

  std::unique_ptr<T> impl_;
};

} // namespace at
