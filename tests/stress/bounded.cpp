// Threads that together never have more than LIVE blocks of one size: no more may be pinned than these need,
// however the threads interleave.
//
// usage: bounded LIVE ROUNDS BYTES [READERS]   -> prints how many pins there were before and after
//
// Twice as many threads as blocks. A block is allocated by one thread and, every second time, freed by whichever
// finds it on the exchange. With READERS, as many threads as blocks, each with its own block, and READERS more that
// read the statistics all the time.
#include "exchange.h"

#include <ATen/core/CachingHostAllocator.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

namespace {

at::HostAllocator* const allocator = at::getHostAllocator(at::kCUDA);

// How many blocks may still be allocated.
class Allowance {
 public:
  explicit Allowance(int left) : left_(left) {}

  bool take() {
    int left = left_.load();
    return left > 0 && left_.compare_exchange_strong(left, left - 1);
  }
  void put() {
    left_.fetch_add(1);
  }

 private:
  std::atomic<int> left_;
};

long pins() {
  return static_cast<long>(allocator->get_stats().num_host_alloc);
}

} // namespace

int main(int count, char** arguments) {
  const int live = std::atoi(arguments[1]);
  const long rounds = std::atol(arguments[2]);
  const std::size_t bytes = std::strtoull(arguments[3], nullptr, 10);
  const int readers = count > 4 ? std::atoi(arguments[4]) : 0;
  {
    std::vector<at::DataPtr> all;
    for (int i = 0; i < live; ++i) {
      all.push_back(allocator->allocate(bytes));
    }
  }
  const long before = pins();
  Allowance allowance(live);
  Exchange<at::DataPtr> exchange;
  std::vector<std::thread> threads;
  for (int number = 0; readers > 0 && number < live; ++number) {
    threads.emplace_back([&] {
      for (long round = 0; round < rounds; ++round) {
        allocator->allocate(bytes);
      }
    });
  }
  for (int number = 0; readers == 0 && number < 2 * live; ++number) {
    threads.emplace_back([&, number] {
      std::minstd_rand random(static_cast<unsigned>(number + 1));
      for (long round = 0; round < rounds; ++round) {
        if (allowance.take()) {
          at::DataPtr block = allocator->allocate(bytes);
          if (random() % 2 == 0) {
            exchange.put(std::move(block));
          } else {
            block.clear();
            allowance.put();
          }
        }
        if (auto block = exchange.take()) {
          block->clear();
          allowance.put();
        }
      }
    });
  }
  std::atomic<bool> over{false};
  std::vector<std::thread> reading;
  for (int number = 0; number < readers; ++number) {
    reading.emplace_back([&] {
      while (!over.load()) {
        pins();
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  over.store(true);
  for (std::thread& thread : reading) {
    thread.join();
  }
  std::printf("%ld %ld\n", before, pins());
}
