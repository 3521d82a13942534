// Blocks are freed while a stream still reads them: until it has done so, nobody else may be given their memory.
//
// usage: events THREADS ROUNDS   -> prints the blocks that streams read; fails with a line on stderr
//
// For the stand-in of CUDA alone, whose streams are busy for as long as they are told. Each thread has a stream of its own,
// and reads in its place. Others may write there as soon as the stream is idle: so a word that has changed is an error
// only if the stream is busy after it was read.
#include <ATen/core/CachingHostAllocator.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;
constexpr std::int64_t kBusy = 1500;
std::atomic<std::uint64_t> marks{1};
std::atomic<std::uint64_t> reads{0};

std::atomic_ref<std::uint64_t> word(void* address) {
  return std::atomic_ref(*static_cast<std::uint64_t*>(address));
}

void live(std::size_t number, std::size_t rounds) {
  at::HostAllocator* allocator = at::getHostAllocator(at::kCUDA);
  std::atomic<std::int64_t>& busy_until = c10::cuda::streams[0][number].busy_until;
  for (std::size_t round = 0; round < rounds; ++round) {
    at::DataPtr block = allocator->allocate(kBytes);
    void* const address = block.get();
    const std::uint64_t mark = marks.fetch_add(1);
    word(address).store(mark);
    const std::int64_t until = stand_in::microseconds_now() + kBusy;
    busy_until.store(until);
    allocator->record_event(address, block.get_context(), c10::Stream(0, number));
    block.clear();
    while (true) {
      const at::DataPtr other = allocator->allocate(kBytes);
      word(other.get()).store(marks.fetch_add(1));
      const std::uint64_t found = word(address).load();
      if (stand_in::microseconds_now() >= until) {
        break;
      }
      if (found != mark) {
        std::fprintf(stderr, "events: a stream reads what somebody else wrote\n");
        std::abort();
      }
      reads.fetch_add(1);
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s THREADS ROUNDS\n", argv[0]);
    return 2;
  }
  std::vector<std::thread> threads;
  // The default stream is number 0.
  for (std::size_t number = 1; number <= std::strtoull(argv[1], nullptr, 10); ++number) {
    threads.emplace_back(live, number, std::strtoull(argv[2], nullptr, 10));
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::printf("%llu\n", static_cast<unsigned long long>(reads.load()));
  return 0;
}
