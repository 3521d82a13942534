// Threads that allocate, hand over and free pinned blocks while others clear and count: no two live
// blocks may share a byte, and the counters must add up at the end.
//
// usage: blocks THREADS ROUNDS SEED   -> prints the rounds done; fails with a line on stderr
//
// Each block is filled with its own mark at both ends and in the middle of every page, and checked before it is
// freed; with a stream, it is recorded there and freed while work may be running. Half of the blocks are freed by
// another thread than the one that allocated them. Sizes lie below and above the threshold; most are from a few
// that repeat.
#include "exchange.h"
#include "marked.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <random>
#include <thread>
#include <vector>

namespace {

std::size_t any_size(std::mt19937_64& random) {
  constexpr std::size_t kUsual[] = {
      64, 8192, 100'000, 1 << 20, (1 << 20) + 1, 3 << 20, 4 << 20, (9 << 20) / 2};
  if (random() % 8 != 0) {
    return kUsual[random() % std::size(kUsual)];
  }
  return random() % (6 << 20) + 8;
}

void work(std::size_t rounds, std::uint64_t seed, Exchange<Marked>& exchange) {
  std::mt19937_64 random(seed);
  const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
  const c10::Stream stream = cuda.getStreamFromGlobalPool(cuda.getDevice());
  std::vector<Marked> live;
  for (std::size_t round = 0; round < rounds; ++round) {
    live.emplace_back(any_size(random));
    if (random() % 4 == 0) {
      live.back().record(stream);
    }
    while (live.size() > random() % 12) {
      std::swap(live[random() % live.size()], live.back());
      if (random() % 2 == 0) {
        exchange.put(std::move(live.back()));
      }
      live.pop_back();
    }
    if (random() % 2 == 0) {
      exchange.take();
    }
    if (random() % 512 == 0) {
      allocator->empty_cache();
    }
    if (random() % 128 == 0) {
      const Counts counts = counts_of(allocator->get_stats());
      if (counts.live_bytes && counts.live_bytes->current > counts.pinned_bytes.current) {
        fail("more is live than is pinned", 0);
      }
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s THREADS ROUNDS SEED\n", argv[0]);
    return 2;
  }
  const std::size_t count = std::strtoull(argv[1], nullptr, 10);
  const std::size_t rounds = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t seed = std::strtoull(argv[3], nullptr, 10);
  allocator = at::getHostAllocator(at::kCUDA);
  {
    Exchange<Marked> exchange;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i) {
      threads.emplace_back(work, rounds, seed + i, std::ref(exchange));
    }
    for (auto& thread : threads) {
      thread.join();
    }
  }
  const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
  cuda.synchronizeDevice(cuda.getDevice().index());
  check_the_end();
  if (marks_lost() != 0) {
    fail("marks were lost", marks_lost());
  }
  std::printf("%zu\n", count * rounds);
  return 0;
}
