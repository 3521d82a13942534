// Threads that come, hand blocks over and die, beside others that read the statistics and clear, and forks of the
// process at any moment. What a block holds is checked whenever it changes hands.
//
// usage: churn THREADS GENERATIONS ROUNDS SEED   -> prints the blocks that changed hands; fails with a line on stderr
//
// Knows only PyTorch's interface, so it runs with torch and with what stands in for it. Streams use large blocks
// only: below the threshold an outstanding event would have the child of a fork meet PyTorch's own locks, which
// nobody holds open for it.
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace {

at::HostAllocator* const allocator = at::getHostAllocator(at::kCUDA);
std::atomic<std::uint64_t> marks{1};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "churn: %s\n", what);
  std::abort();
}

// A block whose first and last words are marked.
class Marked {
 public:
  explicit Marked(std::size_t bytes)
      : data_(allocator->allocate(bytes)), words_(bytes / sizeof(std::uint64_t)), mark_(marks.fetch_add(1)) {
    each([&](std::uint64_t& word) { word = mark_; });
  }
  Marked(Marked&& other) noexcept
      : data_(std::move(other.data_)), words_(std::exchange(other.words_, 0)), mark_(other.mark_) {}
  ~Marked() {
    check();
  }

  void check() {
    each([&](std::uint64_t& word) {
      if (word != mark_) {
        fail("somebody else wrote here");
      }
    });
  }

  void record(c10::Stream stream) {
    if (!allocator->record_event(data_.get(), data_.get_context(), stream)) {
      fail("the block is unknown");
    }
  }

 private:
  template <typename Act>
  void each(Act act) {
    constexpr std::size_t kWords = 16;
    auto* memory = static_cast<std::uint64_t*>(data_.get());
    for (std::size_t word = 0; word < words_; ++word) {
      if (word < kWords || word + kWords >= words_) {
        act(memory[word]);
      }
    }
  }

  at::DataPtr data_;
  std::size_t words_;
  std::uint64_t mark_;
};

class Exchange {
 public:
  // The block that has waited longest for the one that comes, once there are a few.
  std::optional<Marked> swap(Marked block) {
    constexpr std::size_t kWaiting = 8;
    std::lock_guard<std::mutex> guard(mutex_);
    ++count_;
    blocks_.push_back(std::move(block));
    if (blocks_.size() <= kWaiting) {
      return std::nullopt;
    }
    std::optional<Marked> oldest(std::move(blocks_.front()));
    blocks_.pop_front();
    return oldest;
  }
  std::size_t count() {
    std::lock_guard<std::mutex> guard(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::deque<Marked> blocks_;
  std::size_t count_ = 0;
};

constexpr std::size_t kLarge[] = {std::size_t{1} << 20, std::size_t{3} << 19, std::size_t{2} << 20};
constexpr std::size_t kSmall[] = {64, 1000, 16 << 10};
// Of a size that only the main thread asks for.
constexpr std::size_t kOwn = 200 << 10;

void live(std::size_t rounds, std::uint64_t seed, Exchange& exchange) {
  std::mt19937_64 random(seed);
  const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
  const c10::Stream stream = cuda.getStreamFromGlobalPool(cuda.getDevice());
  for (std::size_t round = 0; round < rounds; ++round) {
    const bool large = random() % 2 == 0;
    // Now and then a size that nobody has asked for.
    const std::size_t extra = random() % 16 == 0 ? random() % 64 * 4096 : 0;
    Marked block(large ? kLarge[random() % std::size(kLarge)] + extra : kSmall[random() % std::size(kSmall)]);
    if (large && random() % 4 == 0) {
      block.record(stream);
    }
    if (random() % 2 == 0) {
      if (auto other = exchange.swap(std::move(block))) {
        other->check();
      }
    }
    if (random() % 96 == 0) {
      allocator->empty_cache();
    }
    if (random() % 64 == 0) {
      allocator->get_stats();
    }
  }
}

// What a child may do with what its parent has: read it, free it, and take what is cached.
[[noreturn]] void be_a_child(Marked& large) {
  alarm(6);
  large.check();
  large.~Marked();
  try {
    for (int turn = 0; turn < 3; ++turn) {
      Marked one(kOwn);
      Marked other(kOwn);
      one.check();
    }
  } catch (const std::exception&) {
    // Another thread flushed what was cached; and there is no CUDA in a child, which PyTorch says.
  }
  _exit(0);
}

// What a child's end was.
int fork_once() {
  alignas(Marked) unsigned char memory[sizeof(Marked)];
  {
    // Cached before the fork, for the child to find.
    Marked one(kOwn);
    Marked other(kOwn);
  }
  auto* large = new (memory) Marked(kLarge[0]);
  const pid_t child = fork();
  if (child == 0) {
    be_a_child(*large);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    fail("there is no child");
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
    fail("a child did not end well");
  }
}

// A context that was valid once is looked up, and not believed.
void look_up_what_is_gone() {
  const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
  void* context = nullptr;
  {
    const at::DataPtr block = allocator->allocate(kLarge[0]);
    context = block.get_context();
  }
  allocator->empty_cache();
  if (allocator->record_event(nullptr, context, cuda.getStreamFromGlobalPool(cuda.getDevice()))) {
    fail("a block that nobody has is known");
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
  std::size_t handed = 0;
  {
    Exchange exchange;
    for (std::size_t generation = 0; generation < number(2); ++generation) {
      std::vector<std::thread> threads;
      for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back(live, number(3), number(4) + generation * count + i, std::ref(exchange));
      }
      fork_a_child();
      for (std::thread& thread : threads) {
        thread.join();
      }
      look_up_what_is_gone();
    }
    handed = exchange.count();
  }
  const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
  cuda.synchronizeDevice(cuda.getDevice().index());
  allocator->empty_cache();
  std::printf("%zu\n", handed);
  return 0;
}
