// Everything at once, for as long as is asked for: nothing may be lost, and memory may not creep.
//
// usage: soak SECONDS THREADS SEED   -> a line of JSON for each epoch, and one for all; fails with a line on stderr
//
// In an epoch threads allocate, hand over and free marked blocks of 64 bytes to 2 GiB, use them on streams, die and are
// followed by others; one clears, warms up and counts beside them, and one forks children that read what their parent
// pinned and write a letter. Every third epoch some pins fail, where the simulated runtime is in front. An
// epoch ends with nothing allocated and an empty cache: then the counters must add up, and what is resident is noted.
// The last half of the epochs may have no more of that than the first.
#include "exchange.h"
#include "marked.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostLive = 3ul << 30;
constexpr std::size_t kLargest = 2ul << 30;
// Arenas of malloc's and what the kernel counts in batches.
constexpr std::size_t kSlack = 32ul << 20;

struct Totals {
  std::atomic<std::uint64_t> blocks{0};
  std::atomic<std::uint64_t> large{0};
  std::atomic<std::uint64_t> recorded{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> threads{0};
  std::atomic<std::uint64_t> forks{0};
  std::atomic<std::uint64_t> clears{0};
};
Totals totals;

// How much more may be live: what is asked for fits a machine with a few gigabytes.
std::atomic<std::size_t> live_bytes{0};

template <typename F>
F function(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
}

// A block, and its part of what may be live.
class Counted {
 public:
  Counted(std::size_t bytes) : block_(bytes), bytes_(bytes) {}
  Counted(Counted&& other) noexcept
      : block_(std::move(other.block_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Counted& operator=(Counted&& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Counted() {
    live_bytes -= bytes_;
  }
  Marked& block() {
    return block_;
  }

 private:
  Marked block_;
  std::size_t bytes_;
};

std::optional<Counted> allocate(std::size_t bytes) {
  if (live_bytes.fetch_add(bytes) + bytes > kMostLive) {
    live_bytes -= bytes;
    return std::nullopt;
  }
  try {
    std::optional<Counted> made(std::in_place, bytes);
    ++totals.blocks;
    totals.large += bytes >= (64ul << 20);
    return made;
  } catch (const std::exception&) {
    // The machine, the budget, or a fault: nothing is lost by it.
    live_bytes -= bytes;
    ++totals.refused;
    return std::nullopt;
  }
}

std::size_t any_size(std::mt19937_64& random) {
  constexpr std::size_t kUsual[] = {
      64, 8192, 100'000, 1 << 20, (1 << 20) + 1, 3 << 20, 4 << 20, (9 << 20) / 2, 16 << 20};
  const auto up_to = [&](std::size_t most) {
    return static_cast<std::size_t>(
        64 * std::exp2(std::uniform_real_distribution<>(0, std::log2(most / 64.0))(random)));
  };
  switch (random() % 512) {
    case 0:
      return up_to(kLargest);
    case 1 ... 128:
      return up_to(64 << 20);
    default:
      return kUsual[random() % std::size(kUsual)];
  }
}

void use(Marked& block, std::mt19937_64& random) {
  const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
  const std::size_t streams = random() % 8 < 6 ? 1 : 3;
  for (std::size_t i = 0; i < streams; ++i) {
    try {
      block.record(cuda.getStreamFromGlobalPool(cuda.getDevice()));
      ++totals.recorded;
    } catch (const std::exception&) {
      ++totals.refused;
    }
  }
}

// A thread's life: some hundred blocks, and then another one's in its place.
void live(Clock::time_point until, std::uint64_t seed, Exchange<Counted>& handed) {
  ++totals.threads;
  std::mt19937_64 random(seed);
  std::vector<Counted> held;
  const std::size_t rounds = 100 + random() % 900;
  for (std::size_t round = 0; round < rounds && Clock::now() < until; ++round) {
    if (auto block = allocate(any_size(random))) {
      held.push_back(std::move(*block));
      if (random() % 4 == 0) {
        use(held.back().block(), random);
      }
    }
    while (held.size() > random() % 12) {
      std::swap(held[random() % held.size()], held.back());
      if (random() % 2 == 0) {
        handed.put(std::move(held.back()));
      }
      held.pop_back();
    }
    if (random() % 2 == 0) {
      handed.take();
    }
  }
}

void lives(Clock::time_point until, std::uint64_t seed, Exchange<Counted>& handed) {
  for (std::uint64_t life = 0; Clock::now() < until; ++life) {
    std::thread(live, until, seed + life * 1000, std::ref(handed)).join();
  }
}

// A report is not of one moment: PyTorch reads what is pinned before it reads what is live, and another thread may pin
// between the two. So one alone may say so.
constexpr int kReports = 20;

bool more_is_live_than_pinned() {
  const Counts counts = counts_of(allocator->get_stats());
  return counts.live_bytes && counts.live_bytes->current > counts.pinned_bytes.current;
}

// Clears, warm-ups and statistics beside the others.
void disturb(Clock::time_point until, std::uint64_t seed) {
  const auto warm_up = function<int (*)(int)>("pinbuddy_warm_up");
  std::mt19937_64 random(seed);
  while (Clock::now() < until) {
    switch (random() % 8) {
      case 0:
        allocator->empty_cache();
        ++totals.clears;
        break;
      case 1:
        if (warm_up != nullptr) {
          warm_up(0);
        }
        break;
      default: {
        int wrong = 0;
        while (wrong < kReports && more_is_live_than_pinned()) {
          ++wrong;
        }
        if (wrong == kReports) {
          fail("more is live than is pinned", 0);
        }
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 40));
  }
}

// Children read what their parent pinned, and what they write the parent reads. Where that is PyTorch's own memory, the
// driver has to share it (PINBUDDY_SIM_SHARED).
class Family {
 public:
  Family() : kept_(6 << 20), letter_(allocator->allocate(5 << 20)) {}

  void fork_children(Clock::time_point until) {
    auto* words = static_cast<volatile std::uint64_t*>(letter_.get());
    for (std::uint64_t number = 1; Clock::now() < until; ++number) {
      words[0] = 0;
      const pid_t child = fork();
      if (child == 0) {
        kept_.check();
        words[0] = number;
        _exit(0);
      }
      int status = -1;
      if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fail("a child that reads its parent's blocks ended badly", static_cast<std::size_t>(status));
      }
      if (words[0] != number) {
        fail("what a child wrote did not arrive", 0);
      }
      ++totals.forks;
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
  }

 private:
  Marked kept_;
  at::DataPtr letter_;
};

// Kilobytes of /proc/self/status.
std::size_t resident_kb() {
  std::size_t kb = 0;
  char line[256];
  std::FILE* status = std::fopen("/proc/self/status", "r");
  while (status != nullptr && std::fgets(line, sizeof line, status) != nullptr) {
    std::sscanf(line, "VmRSS: %zu kB", &kb);
  }
  if (status != nullptr) {
    std::fclose(status);
  }
  return kb;
}

// Some of PyTorch's own pins of this epoch fail. Not cudaHostRegister, after which CUDA allocates all blocks, nor an
// event's creation, after which a block is never used again, as with stock. Whether there is a simulated runtime that can do that.
bool arm(std::mt19937_64& random, bool on) {
  const auto faults = function<int (*)(const char*)>("pinbuddy_sim_faults");
  if (faults == nullptr) {
    return false;
  }
  std::string plan;
  for (int i = 0; on && i < 16; ++i) {
    plan += std::string(plan.empty() ? "" : ";") + "cudaHostAlloc:" + std::to_string(1 + random() % 200) + "=2";
  }
  return faults(plan.c_str()) == 0 && on;
}

// Whether pins of it were to fail.
bool epoch(std::size_t threads, std::uint64_t seed, double seconds, std::mt19937_64& random, bool faulty) {
  const auto until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  // Before pins fail: its letter is pinned here, where nobody expects a refusal.
  Family family;
  faulty = arm(random, faulty);
  Exchange<Counted> handed;
  std::vector<std::thread> all;
  for (std::size_t i = 0; i < threads; ++i) {
    all.emplace_back(lives, until, seed + i, std::ref(handed));
  }
  all.emplace_back(disturb, until, seed);
  all.emplace_back(&Family::fork_children, &family, until);
  for (auto& thread : all) {
    thread.join();
  }
  arm(random, false);
  return faulty;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s SECONDS THREADS SEED\n", argv[0]);
    return 2;
  }
  const double seconds = std::strtod(argv[1], nullptr);
  const std::size_t threads = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t seed = std::strtoull(argv[3], nullptr, 10);
  allocator = at::getHostAllocator(at::kCUDA);
  const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
  std::mt19937_64 random(seed);
  const auto start = Clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const double length = std::clamp(seconds / 12, 2.0, 20.0);
  std::vector<std::size_t> resident;
  std::size_t with_faults = 0;
  while (passed() < seconds || resident.size() < 4) {
    const bool faulty =
        epoch(threads, seed + resident.size() * 1'000'000, length, random, resident.size() % 3 == 2);
    with_faults += faulty;
    cuda.synchronizeDevice(cuda.getDevice().index());
    check_the_end();
    resident.push_back(resident_kb());
    std::printf(
        "{\"seconds\":%.0f,\"blocks\":%llu,\"resident_kb\":%zu,\"faults\":%s}\n",
        passed(),
        static_cast<unsigned long long>(totals.blocks.load()),
        resident.back(),
        faulty ? "true" : "false");
    std::fflush(stdout);
  }
  const auto middle = resident.begin() + static_cast<std::ptrdiff_t>(resident.size() / 2);
  const std::size_t first = *std::max_element(resident.begin(), middle);
  const std::size_t last = *std::max_element(middle, resident.end());
  std::printf(
      "{\"seconds\":%.0f,\"epochs\":%zu,\"epochs_with_faults\":%zu,\"threads\":%llu,\"blocks\":%llu,"
      "\"of_64_mib_and_more\":%llu,\"uses_on_streams\":%llu,\"refused\":%llu,\"forks\":%llu,\"clears\":%llu,"
      "\"marks_lost\":%llu,\"resident_kb_first_half\":%zu,\"resident_kb_last_half\":%zu}\n",
      passed(),
      resident.size(),
      with_faults,
      static_cast<unsigned long long>(totals.threads.load()),
      static_cast<unsigned long long>(totals.blocks.load()),
      static_cast<unsigned long long>(totals.large.load()),
      static_cast<unsigned long long>(totals.recorded.load()),
      static_cast<unsigned long long>(totals.refused.load()),
      static_cast<unsigned long long>(totals.forks.load()),
      static_cast<unsigned long long>(totals.clears.load()),
      static_cast<unsigned long long>(marks - 1 - whole),
      first,
      last);
  if (last * 1024 > first * 1024 + kSlack) {
    fail("what is resident grows", (last - first) * 1024);
  }
  return 0;
}
