// Times allocate + free of a cached pinned block through PyTorch's registry, a turn at a time.
//
// usage: allocate_free BYTES [LIVE]   <- lines with a number of pairs   -> a line each: nanoseconds a pair
//
// LIVE blocks at a time (default 1): allocated one after the other, and freed newest first. With 0 BYTES, which need no
// memory, the processor's counter is read instead, once for a pair.
//
// The same program runs stock and fork, depending on the libtorch that the loader finds. It waits for each line, so
// that a driver can let two of them take turns. It measures the thread's processor time, which excludes other
// programs, since nothing here waits.
#include <ATen/core/CachingHostAllocator.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>
#ifdef __x86_64__
#include <x86intrin.h>
#else
#include <chrono>
#endif

namespace {

std::uint64_t counter() {
#ifdef __x86_64__
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

double thread_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: %s BYTES [LIVE]\n", argv[0]);
    return 2;
  }
  const std::size_t bytes = std::strtoull(argv[1], nullptr, 10);
  at::HostAllocator* allocator = at::getHostAllocator(at::kCUDA);
  const long live = argc == 3 ? std::atol(argv[2]) : 1;
  std::vector<at::DataPtr> blocks;
  volatile std::uint64_t read = 0;
  const auto allocate_and_free = [&](long pairs) {
    for (long i = 0; bytes == 0 && i < pairs; ++i) {
      read = counter();
    }
    if (bytes == 0) {
      return;
    }
    for (long i = 0; live > 1 && i < pairs; i += live) {
      while (static_cast<long>(blocks.size()) < live) {
        blocks.push_back(allocator->allocate(bytes));
      }
      while (!blocks.empty()) {
        blocks.pop_back();
      }
    }
    for (long i = 0; live == 1 && i < pairs; ++i) {
      allocator->allocate(bytes);
    }
  };
  long pairs = 0;
  while (std::scanf("%ld", &pairs) == 1 && pairs > 0) {
    // The other's turn has evicted the processor's caches.
    allocate_and_free(pairs / 4);
    const double start = thread_nanoseconds();
    allocate_and_free(pairs);
    std::printf("%.2f\n", (thread_nanoseconds() - start) / static_cast<double>(pairs));
    std::fflush(stdout);
  }
  return 0;
}
