// What no ordinary program does: requests of nearly all addresses, and forks of several threads at once, whose handlers glibc runs
// at once from 2.36 on; two of these forks take longer than a flush waits, as those of large processes do. Then what a plan is
// made of.
//
// usage: edges THREADS FORKS   -> prints the forks; fails with a line on stderr
//
// Knows only PyTorch's interface.
#include <pthread.h>
#include <sys/mman.h>
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

#include "../stress/marked.h"

namespace {

using Clock = std::chrono::steady_clock;

// Whoever adds to these lengths, or rounds them up, must not come out at short ones.
void ask_for_nearly_everything() {
  for (std::size_t less = 0; less <= std::size_t{2} << 20; less = less * 2 + 1) {
    try {
      const at::DataPtr block = allocator->allocate(SIZE_MAX / 2 - less);
      fail("a block of nearly all addresses was handed out: bytes less than all", less);
    } catch (const std::exception&) {
    }
  }
}

std::atomic<bool> forks_are_slow{false};

// Before a library's constructors, and so before the allocator's handler is known: this one is called after it.
void slow_down() {
  pthread_atfork(
      [] {
        if (forks_are_slow) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1300));
        }
      },
      nullptr, nullptr);
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const first)() = slow_down;

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
    allocator->allocate(std::size_t{1} << 20);
    allocator->empty_cache();
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - before).count();
  if (took > 3000) {
    fail("after forks of several threads the cache is emptied late: milliseconds", static_cast<std::size_t>(took));
  }
}

// The same requests again and again, as a plan has them, whose memory goes now and then and comes back elsewhere.
void repeat() {
  for (int turn = 0; turn < 400; ++turn) {
    {
      std::vector<Marked> live;
      for (const std::size_t mib : {2, 3, 5}) {
        live.emplace_back(mib << 20);
      }
    }
    if (turn % 40 == 0) {
      allocator->empty_cache();
      // Takes the addresses that are free now, and reserves no memory.
      for (int part = 0; part < 16; ++part) {
        ::mmap(nullptr, 2 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      }
    }
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
  allocator = at::getHostAllocator(at::kCUDA);
  allocator->allocate(std::size_t{1} << 20);
  ask_for_nearly_everything();
  fork_in(threads, forks);
  forks_are_slow = true;
  fork_in(2, 1);
  flush_soon();
  repeat();
  std::printf("%d\n", threads * forks + 2);
  return marks_lost() == 0 ? 0 : 1;
}
