// What no ordinary program does: requests of nearly all addresses, and forks of several threads at once, whose handlers glibc runs
// at once from 2.36 on; two of these forks take longer than a flush waits, as those of large processes do.
//
// usage: edges THREADS FORKS   -> prints the forks; fails with a line on stderr
//
// Knows only PyTorch's interface.
#include <ATen/core/CachingHostAllocator.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

at::HostAllocator* allocator() {
  return at::getHostAllocator(at::kCUDA);
}

[[noreturn]] void fail(const char* what, std::size_t number) {
  std::fprintf(stderr, "%s (%zu)\n", what, number);
  std::exit(1);
}

// Whoever adds to these lengths, or rounds them up, must not come out at short ones.
void ask_for_nearly_everything() {
  for (std::size_t less = 0; less <= std::size_t{2} << 20; less = less * 2 + 1) {
    try {
      const at::DataPtr block = allocator()->allocate(SIZE_MAX - less);
      fail("a block of nearly all addresses was handed out: bytes less than all", less);
    } catch (const std::exception&) {
    }
  }
}

std::atomic<bool> forks_are_slow{false};

// Before the allocator's handler is known, so this one is called after it.
[[gnu::constructor(101)]] void slow_down() {
  pthread_atfork(
      [] {
        if (forks_are_slow) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1300));
        }
      },
      nullptr, nullptr);
}

void fork_once() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) {
    fail("a fork failed: status", static_cast<std::size_t>(status));
  }
}

void fork_in(int threads, int forks) {
  std::vector<std::thread> all;
  for (; threads > 0; --threads) {
    all.emplace_back([forks] {
      for (int turn = 0; turn < forks; ++turn) {
        fork_once();
      }
    });
  }
  for (auto& thread : all) {
    thread.join();
  }
}

// A flush that waits for one that is over waits for a second.
void flush_soon() {
  const auto before = Clock::now();
  for (int turn = 0; turn < 4; ++turn) {
    allocator()->allocate(std::size_t{1} << 20);
    allocator()->empty_cache();
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - before).count();
  if (took > 3000) {
    fail("after forks of several threads the cache is emptied late: milliseconds", static_cast<std::size_t>(took));
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s THREADS FORKS\n", argv[0]);
    return 2;
  }
  const int threads = std::atoi(argv[1]);
  const int forks = std::atoi(argv[2]);
  allocator()->allocate(std::size_t{1} << 20);
  ask_for_nearly_everything();
  fork_in(threads, forks);
  forks_are_slow = true;
  fork_in(2, 1);
  flush_soon();
  std::printf("%d\n", threads * forks + 2);
  return 0;
}
