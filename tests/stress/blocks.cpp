// Threads that allocate, hand over and free pinned blocks while others clear and count: no two live
// blocks may share a byte, and the counters must add up at the end.
//
// usage: blocks THREADS ROUNDS SEED   -> prints the rounds done; fails with a line on stderr
//
// Each block is filled with a mark of its own at both ends and in the middle of every page, and
// checked before it is freed; with a stream, it is recorded there and freed while work may go on.
// Half of the blocks are freed by another thread than the one that asked for them. Sizes lie below
// and above the threshold, most of them from a few that come again and again.
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/version.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t kPage = 4096;

at::HostAllocator* allocator = nullptr;
std::atomic<std::uint64_t> marks{1};

using c10::CachingAllocator::Stat;

struct Counts {
  Stat pinned_bytes;
  // Not from 2.10 to 2.12, where upstream leaves out each free with no event.
  std::optional<Stat> live_blocks;
  // Not before 2.13: upstream took a byte off for each block that came back after an event.
  std::optional<Stat> live_bytes;
};

// By whichever names the release has: generic, so that the other ones need not exist.
Counts counts_of(const auto& stats) {
  if constexpr (requires { stats.active_requests; }) {
    Counts counts{stats.allocated_bytes, {}, {}};
#if TORCH_VERSION_MINOR >= 13
    counts.live_blocks = stats.active_requests;
    counts.live_bytes = stats.active_bytes;
#endif
    return counts;
  } else {
    return {stats.reserved_bytes, stats.allocation, {}};
  }
}

[[noreturn]] void fail(const char* what, std::size_t offset) {
  std::fprintf(stderr, "%s at offset %zu\n", what, offset);
  std::_Exit(1);
}

// A block with its mark on every page.
class Marked {
 public:
  explicit Marked(std::size_t bytes)
      : data_(allocator->allocate(bytes)), bytes_(bytes), mark_(marks.fetch_add(1)) {
    for_each_word([&](std::uint64_t& word, std::size_t) { word = mark_; });
  }
  Marked(Marked&& other) noexcept
      : data_(std::move(other.data_)),
        bytes_(std::exchange(other.bytes_, 0)),
        mark_(other.mark_) {}
  Marked& operator=(Marked&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mark_, other.mark_);
    return *this;
  }
  ~Marked() {
    check();
  }

  void check() {
    for_each_word([&](std::uint64_t& word, std::size_t offset) {
      if (word != mark_) {
        fail("somebody else wrote here", offset);
      }
    });
  }

  void record(c10::Stream stream) {
    if (!allocator->record_event(data_.get(), data_.get_context(), stream)) {
      fail("the block is unknown", 0);
    }
  }

 private:
  template <typename Act>
  void for_each_word(Act act) {
    if (bytes_ == 0) {
      // Moved from: the block is another's.
      return;
    }
    auto* memory = static_cast<char*>(data_.get());
    const auto at = [&](std::size_t offset) {
      act(*reinterpret_cast<std::uint64_t*>(memory + offset), offset);
    };
    for (std::size_t page = 0; page + kPage <= bytes_; page += kPage) {
      at(page);
      at(page + kPage / 2);
    }
    at((bytes_ - sizeof(std::uint64_t)) / sizeof(std::uint64_t) * sizeof(std::uint64_t));
  }

  at::DataPtr data_;
  std::size_t bytes_;
  std::uint64_t mark_;
};

// Blocks on their way to whoever frees them.
class Exchange {
 public:
  void put(Marked block) {
    std::lock_guard<std::mutex> guard(mutex_);
    blocks_.push_back(std::move(block));
  }
  std::optional<Marked> take() {
    std::lock_guard<std::mutex> guard(mutex_);
    if (blocks_.empty()) {
      return std::nullopt;
    }
    std::optional<Marked> block(std::move(blocks_.front()));
    blocks_.pop_front();
    return block;
  }

 private:
  std::mutex mutex_;
  std::deque<Marked> blocks_;
};

std::size_t any_size(std::mt19937_64& random) {
  constexpr std::size_t kUsual[] = {
      64, 8192, 100'000, 1 << 20, (1 << 20) + 1, 3 << 20, 4 << 20, (9 << 20) / 2};
  if (random() % 8 != 0) {
    return kUsual[random() % std::size(kUsual)];
  }
  return random() % (6 << 20) + 8;
}

void work(std::size_t rounds, std::uint64_t seed, Exchange& exchange) {
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

void check_the_end() {
  allocator->empty_cache();
  const Counts counts = counts_of(allocator->get_stats());
  for (const auto& stat : {counts.live_blocks, counts.live_bytes}) {
    if (stat && (stat->current != 0 || stat->allocated != stat->freed || stat->peak <= 0)) {
      fail("the counters do not add up", 0);
    }
  }
  if (counts.pinned_bytes.current != 0) {
    fail("something stayed pinned", static_cast<std::size_t>(counts.pinned_bytes.current));
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
    Exchange exchange;
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
  std::printf("%zu\n", count * rounds);
  return 0;
}
