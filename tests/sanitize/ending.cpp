// The process ends while threads still ask for memory, fill it and free it: what looks at freed memory then must not take
// what they write for somebody else's.
//
// usage: ending THREADS MILLISECONDS   -> prints the blocks so far
//
// Knows only PyTorch's interface. Never joins its threads: that is what it is about.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include "../stress/marked.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s THREADS MILLISECONDS\n", argv[0]);
    return 2;
  }
  static std::atomic<std::size_t> blocks{0};
  allocator = at::getHostAllocator(at::kCUDA);
  for (int left = std::atoi(argv[1]); left > 0; --left) {
    std::thread([] {
      for (std::size_t turn = 0;; ++turn) {
        const std::size_t bytes = (turn % 7 + 1) << 16;
        try {
          const Marked block(bytes);
        } catch (const std::exception&) {
          // PyTorch's word for a device is gone by then, as with stock.
          return;
        }
        blocks.fetch_add(1, std::memory_order_relaxed);
      }
    }).detach();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(argv[2])));
  std::printf("%zu\n", blocks.load());
  return 0;
}
