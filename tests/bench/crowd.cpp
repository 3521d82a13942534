#include "crowd.h"

#include "clock.h"

namespace bench {

bool Crowd::grow(std::size_t count, double seconds) {
  constexpr std::size_t bytes = 4096;
  const double end = wall_nanoseconds() + seconds * 1e9;
  auto in_time = [end, done = 0]() mutable {
    return ++done % 64 != 0 || wall_nanoseconds() < end;
  };
  std::vector<at::DataPtr> between;
  const std::size_t more = count > live_.size() ? count - live_.size() : 0;
  between.reserve(more);
  live_.reserve(count);
  for (std::size_t i = 0; i < more; ++i) {
    if (!in_time()) {
      return false;
    }
    live_.push_back(allocator_->allocate(bytes));
    between.push_back(allocator_->allocate(bytes));
  }
  for (at::DataPtr& block : between) {
    if (!in_time()) {
      // Freeing the rest would take equally long.
      new std::vector<at::DataPtr>(std::move(between));
      return false;
    }
    block.clear();
  }
  return true;
}

} // namespace bench
