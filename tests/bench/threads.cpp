#include "threads.h"

#include "clock.h"

#include <chrono>

namespace bench {

Threads::Threads(at::HostAllocator* allocator, const Requests& requests, int count)
    : barrier_(count + 1) {
  for (int i = 0; i < count; ++i) {
    threads_.emplace_back([this, allocator, requests] {
      Loop loop(allocator, requests);
      for (barrier_.arrive_and_wait(); pairs_ != 0; barrier_.arrive_and_wait()) {
        loop.run(pairs_);
        barrier_.arrive_and_wait();
      }
    });
  }
}

Threads::~Threads() {
  pairs_ = 0;
  barrier_.arrive_and_wait();
}

double Threads::run(long pairs) {
  pairs_ = pairs;
  const double start = wall_nanoseconds();
  barrier_.arrive_and_wait();
  barrier_.arrive_and_wait();
  return wall_nanoseconds() - start;
}

void beside_statistics(at::HostAllocator* allocator, std::size_t bytes, int count, double seconds) {
  // Each is told to stop, and waited for, where it is destroyed.
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([allocator, bytes](std::stop_token over) {
      while (!over.stop_requested()) {
        allocator->allocate(bytes);
      }
    });
  }
  threads.emplace_back([allocator](std::stop_token over) {
    while (!over.stop_requested()) {
      allocator->get_stats();
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

} // namespace bench
