// What one thread hands over for another to take, the oldest first. Knows no allocator.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <utility>

template <typename T>
class Exchange {
 public:
  void put(T one) {
    std::lock_guard<std::mutex> guard(mutex_);
    waiting_.push_back(std::move(one));
  }
  std::optional<T> take() {
    std::lock_guard<std::mutex> guard(mutex_);
    if (waiting_.empty()) {
      return std::nullopt;
    }
    std::optional<T> one(std::move(waiting_.front()));
    waiting_.pop_front();
    return one;
  }

 private:
  std::mutex mutex_;
  std::deque<T> waiting_;
};
