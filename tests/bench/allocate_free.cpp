// Times allocate + free of a cached pinned block through PyTorch's registry.
//
// usage: allocate_free BYTES PAIRS ROUNDS   ->   one line: nanoseconds a pair, a number per round
//
// One program for stock and fork: the folder of libtorch that the loader finds decides. The time is
// the thread's own processor time: nothing here waits, and what else the machine does is left out.
#include <ATen/core/CachingHostAllocator.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

double thread_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s BYTES PAIRS ROUNDS\n", argv[0]);
    return 2;
  }
  const std::size_t bytes = std::strtoull(argv[1], nullptr, 10);
  const long pairs = std::strtol(argv[2], nullptr, 10);
  const long rounds = std::strtol(argv[3], nullptr, 10);
  at::HostAllocator* allocator = at::getHostAllocator(at::kCUDA);
  for (long i = 0; i < pairs; ++i) {
    allocator->allocate(bytes);
  }
  for (long round = 0; round < rounds; ++round) {
    const double start = thread_nanoseconds();
    for (long i = 0; i < pairs; ++i) {
      allocator->allocate(bytes);
    }
    std::printf("%.2f ", (thread_nanoseconds() - start) / static_cast<double>(pairs));
  }
  std::printf("\n");
  return 0;
}
