#include "threads.h"

#include "clock.h"

namespace bench {

Threads::Threads(at::HostAllocator* allocator, const Requests& requests, int count)
    : start_(count + 1), end_(count + 1) {
  for (int i = 0; i < count; ++i) {
    threads_.emplace_back([this, allocator, requests] {
      Loop loop(allocator, requests);
      for (;;) {
        start_.arrive_and_wait();
        if (pairs_ == 0) {
          return;
        }
        loop.run(pairs_);
        end_.arrive_and_wait();
      }
    });
  }
}

Threads::~Threads() {
  pairs_ = 0;
  start_.arrive_and_wait();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

double Threads::run(long pairs) {
  pairs_ = pairs;
  const double start = wall_nanoseconds();
  start_.arrive_and_wait();
  end_.arrive_and_wait();
  return wall_nanoseconds() - start;
}

} // namespace bench
