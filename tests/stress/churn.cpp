// Threads that come, allocate, hand over and free pinned blocks, and die, beside others that clear and count, and forks
// of the process at any moment: no two live blocks may share a byte, and the counters must add up at the end.
//
// usage: churn THREADS GENERATIONS ROUNDS SEED   -> prints the rounds done; fails with a line on stderr
//
// Half of the blocks are freed by another thread than the one that allocated them. With a stream, a block is recorded
// there and freed while work may be running. Sizes lie below and above the threshold; most are from a few that repeat.
// The process forks in each generation but the last. Until then streams use large blocks only: below the threshold an
// outstanding event would have the child of a fork meet PyTorch's own locks, which nobody holds open for it.
//
// Knows only PyTorch's interface.
#include "exchange.h"
#include "marked.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <new>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kLarge = std::size_t{1} << 20;
// Of a size that only the main thread asks for.
constexpr std::size_t kOwn = 200 << 10;

std::size_t any_size(std::mt19937_64& random) {
  constexpr std::size_t kUsual[] = {64, 8192, 100'000, kLarge, kLarge + 1, 3 << 20, 4 << 20, (9 << 20) / 2};
  if (random() % 8 != 0) {
    return kUsual[random() % std::size(kUsual)];
  }
  return random() % (6 << 20) + 8;
}

void work(std::size_t rounds, std::uint64_t seed, bool forks, Exchange<Marked>& exchange) {
  std::mt19937_64 random(seed);
  const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
  // Their memory may lie on several nodes (BUDDY_NUMA).
  cuda.uncheckedSetDevice({c10::kCUDA, static_cast<c10::DeviceIndex>(seed % cuda.deviceCount())});
  const c10::Stream stream = cuda.getStreamFromGlobalPool(cuda.getDevice());
  std::vector<Marked> live;
  for (std::size_t round = 0; round < rounds; ++round) {
    live.emplace_back(any_size(random));
    if (random() % 4 == 0 && (!forks || live.back().bytes() >= kLarge)) {
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
    if (random() % 128 == 0) {
      allocator->empty_cache();
    }
    if (random() % 64 == 0) {
      const Counts counts = counts_of(allocator->get_stats());
      if (counts.live_bytes && counts.live_bytes->current > counts.pinned_bytes.current) {
        fail("more is live than is pinned", 0);
      }
    }
  }
}

// What a child may do with what its parent has: read it, free it, and take what is cached.
[[noreturn]] void be_a_child(Marked& large) {
  alarm(6);
  bool is_whole = large.check();
  large.~Marked();
  try {
    for (int turn = 0; turn < 3; ++turn) {
      Marked one(kOwn);
      Marked other(kOwn);
      is_whole &= one.check();
    }
  } catch (const std::exception&) {
    // Another thread flushed what was cached; and there is no CUDA in a child, which PyTorch says.
  }
  _exit(is_whole ? 0 : 1);
}

// What a child's end was.
int fork_once() {
  alignas(Marked) unsigned char memory[sizeof(Marked)];
  {
    // Cached before the fork, for the child to find.
    Marked one(kOwn);
    Marked other(kOwn);
  }
  auto* large = new (memory) Marked(kLarge);
  const pid_t child = fork();
  if (child == 0) {
    be_a_child(*large);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    fail("there is no child", 0);
  }
  large->~Marked();
  return status;
}

void fork_a_child() {
  int status = fork_once();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    // Where a flush left the child nothing, it asks PyTorch's lists, whose locks may have been held: once in a while.
    status = fork_once();
  }
  if (status != 0) {
    fail("a child did not end well", 0);
  }
}

// A context that was valid once is looked up, and not believed.
void look_up_what_is_gone() {
  const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
  void* context = nullptr;
  {
    const at::DataPtr block = allocator->allocate(kLarge);
    context = block.get_context();
  }
  allocator->empty_cache();
  if (allocator->record_event(nullptr, context, cuda.getStreamFromGlobalPool(cuda.getDevice()))) {
    fail("a block that nobody has is known", 0);
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s THREADS GENERATIONS ROUNDS SEED\n", argv[0]);
    return 2;
  }
  const auto number = [&](int index) { return std::strtoull(argv[index], nullptr, 10); };
  const std::size_t count = number(1);
  const std::size_t generations = number(2);
  const std::size_t rounds = number(3);
  allocator = at::getHostAllocator(at::kCUDA);
  {
    Exchange<Marked> exchange;
    for (std::size_t generation = 0; generation < generations; ++generation) {
      const bool forks = generation + 1 < generations;
      const std::uint64_t seed = number(4) + generation * count;
      std::vector<std::thread> threads;
      for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back(work, rounds, seed + i, forks, std::ref(exchange));
      }
      if (forks) {
        fork_a_child();
      }
      for (std::thread& thread : threads) {
        thread.join();
      }
      look_up_what_is_gone();
    }
  }
  const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
  for (c10::DeviceIndex device = 0; device < cuda.deviceCount(); ++device) {
    cuda.synchronizeDevice(device);
  }
  check_the_end();
  if (marks_lost() != 0) {
    fail("marks were lost", marks_lost());
  }
  std::printf("%zu\n", count * generations * rounds);
  return 0;
}
