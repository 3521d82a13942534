// Threads that allocate, free and hand over device memory on a few streams, use it on other streams, empty the cache,
// capture and run out of memory, with a plan for it (BUDDY_DEVICE_PLAN).
//
// usage: device                      -> the run that a plan is made of
//        device THREADS ROUNDS SEED  -> prints what the plan served; fails with a line on stderr
//
// Every run begins with the same requests on the same streams: these are what is planned. What a block holds is checked
// before it is freed, and what another stream read of it once that stream has done so.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../stress/exchange.h"

namespace {

using c10::cuda::CUDAStream;
namespace device_memory = c10::cuda::CUDACachingAllocator;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::array kPlanned = {2 * kMiB, 3 * kMiB, 5 * kMiB};
constexpr std::size_t kStreams = 3;

std::atomic<std::uint32_t> marks{1};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "device: %s\n", what);
  std::_Exit(1);
}

// Of the runtime and of the library, which this program is not linked with.
template <typename F>
F function(const char* name) {
  const auto found = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
  if (found == nullptr) {
    fail(name);
  }
  return found;
}

void copy(void* to, const void* from, std::size_t bytes, CUDAStream stream) {
  static const auto copy =
      function<int (*)(void*, const void*, std::size_t, int, cudaStream_t)>("cudaMemcpyAsync");
  // As the addresses say.
  constexpr int kDefault = 4;
  if (copy(to, from, bytes, kDefault, stream.stream()) != 0) {
    fail("a copy was refused");
  }
}

// A block of the current stream, whose first and last words are marked.
class Marked {
 public:
  explicit Marked(std::size_t bytes)
      : data_(device_memory::get()->allocate(bytes)),
        bytes_(bytes),
        mark_(marks.fetch_add(1)),
        stream_(c10::cuda::getCurrentCUDAStream()) {
    // From memory that is not pinned: it is read before the call returns.
    copy(data_.get(), &mark_, sizeof(mark_), stream_);
    copy(last(), &mark_, sizeof(mark_), stream_);
  }
  Marked(Marked&&) noexcept = default;
  void check() {
    for (const void* word : {static_cast<const void*>(data_.get()), static_cast<const void*>(last())}) {
      std::uint32_t found = 0;
      // To memory that is not pinned: it is done when the call returns.
      copy(&found, word, sizeof(found), stream_);
      if (found != mark_) {
        fail("somebody else wrote here");
      }
    }
  }
  // Freed now, while `stream`, which waits for nobody, may still read it.
  void read_late(CUDAStream stream, std::uint32_t* pinned) && {
    check();
    copy(pinned, last(), sizeof(mark_), stream);
    device_memory::get()->recordStream(data_, stream);
    data_.clear();
  }
  std::uint32_t mark() const {
    return mark_;
  }

 private:
  void* last() const {
    return static_cast<char*>(data_.get()) + bytes_ - sizeof(mark_);
  }

  c10::DataPtr data_;
  std::size_t bytes_;
  std::uint32_t mark_;
  CUDAStream stream_;
};

using Streams = std::vector<CUDAStream>;

// What is planned.
void start_as_planned(const Streams& streams) {
  for (int iteration = 0; iteration < 20; ++iteration) {
    for (const CUDAStream stream : streams) {
      c10::cuda::setCurrentCUDAStream(stream);
      std::vector<Marked> live;
      for (const std::size_t bytes : kPlanned) {
        live.emplace_back(bytes).check();
      }
    }
  }
}

// Requests that a capture may make are PyTorch's; what is freed meanwhile waits for its end.
void capture(Marked block, CUDAStream other, std::uint32_t* pinned, std::uint64_t number) {
  device_memory::CUDAAllocator* allocator = device_memory::get();
  const c10::MempoolId_t pool{0, number};
  allocator->beginAllocateToPool(0, pool, [](cudaStream_t) { return false; });
  std::move(block).read_late(other, pinned);
  allocator->endAllocateToPool(0, pool);
  allocator->releasePool(0, pool);
}

// PyTorch refuses while a capture is under way, after the plans have been asked.
void empty_cache() {
  try {
    device_memory::emptyCache();
  } catch (const c10::Error&) {
  }
}

void live(const Streams& streams, std::size_t rounds, std::uint64_t seed, Exchange<Marked>& exchange) {
  std::mt19937_64 random(seed);
  const auto pinned_alloc = function<int (*)(void**, std::size_t, unsigned)>("cudaHostAlloc");
  void* memory = nullptr;
  if (pinned_alloc(&memory, sizeof(std::uint32_t), 0) != 0) {
    fail("nothing can be pinned");
  }
  auto* pinned = static_cast<std::uint32_t*>(memory);
  for (std::size_t round = 0; round < rounds; ++round) {
    const CUDAStream stream = streams[random() % kStreams];
    const CUDAStream other = streams[random() % kStreams];
    c10::cuda::setCurrentCUDAStream(stream);
    const std::size_t extra = random() % 8 == 0 ? random() % 64 * 4096 : 0;
    Marked block(kPlanned[random() % kPlanned.size()] + extra);
    block.check();
    switch (random() % 8) {
      case 0:
      case 1: {
        const std::uint32_t mark = block.mark();
        if (random() % 4 == 0) {
          capture(std::move(block), other, pinned, seed << 20 | round);
        } else {
          std::move(block).read_late(other, pinned);
        }
        other.synchronize();
        if (*pinned != mark) {
          fail("a freed block was written while a stream read it");
        }
        break;
      }
      case 2:
        exchange.put(std::move(block));
        break;
      case 3:
      case 4:
        if (auto found = exchange.take()) {
          found->check();
        }
        break;
      default:
        break;
    }
    if (random() % 24 == 0) {
      empty_cache();
    }
    if (random() % 32 == 0) {
      device_memory::getDeviceStats(0);
      device_memory::resetPeakStats(0);
    }
    if (random() % 64 == 0) {
      device_memory::get()->snapshot({0, 0}, false);
    }
  }
}

// As much as there is, of which something is in use: the plans are dropped. To a request for more, nothing would give way.
void run_out() {
  const Marked live(kPlanned[0]);
  try {
    const auto all = device_memory::get()->getMemoryInfo(0).second;
    device_memory::get()->allocate(all);
  } catch (const c10::OutOfMemoryError&) {
    return;
  }
  fail("there is more memory than there is");
}

std::uint64_t served() {
  std::string text(1 << 16, 0);
  function<std::size_t (*)(char*, std::size_t)>("pinbuddy_stats_json")(text.data(), text.size());
  std::uint64_t hits = 0;
  constexpr char kName[] = "\"hits\":";
  for (std::size_t at = text.find(kName, text.find("\"device\":")); at != std::string::npos;
       at = text.find(kName, at + 1)) {
    hits += std::strtoull(text.c_str() + at + sizeof(kName) - 1, nullptr, 10);
  }
  return hits;
}

void check_the_end(const Streams& streams) {
  // Events may seem to be outstanding for a little longer.
  for (int turn = 0; turn < 200; ++turn) {
    device_memory::emptyCache();
    const auto stats = device_memory::getDeviceStats(0);
    if (stats.reserved_bytes[0].current == 0) {
      if (stats.allocated_bytes[0].current != 0 || stats.active_bytes[0].current != 0) {
        fail("the counters do not add up");
      }
      return;
    }
    for (const CUDAStream stream : streams) {
      stream.synchronize();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  fail("not all memory was given back");
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 1 && argc != 4) {
    std::fprintf(stderr, "usage: %s [THREADS ROUNDS SEED]\n", argv[0]);
    return 2;
  }
  c10::cuda::CUDACachingAllocator::init(1);
  Streams streams;
  for (std::size_t number = 0; number < kStreams; ++number) {
    streams.push_back(c10::cuda::getStreamFromPool(false, 0));
  }
  start_as_planned(streams);
  if (argc == 1) {
    return 0;
  }
  const auto number = [&](int index) { return std::strtoull(argv[index], nullptr, 10); };
  Exchange<Marked> exchange;
  // The second time beside what the plans leave once they are dropped.
  for (std::uint64_t time = 0; time < 2; ++time) {
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < number(1); ++i) {
      threads.emplace_back(
          live, std::cref(streams), number(2), (number(3) * 2 + time) * number(1) + i, std::ref(exchange));
    }
    if (time == 1) {
      run_out();
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  while (exchange.take()) {
  }
  std::printf("%llu\n", static_cast<unsigned long long>(served()));
  check_the_end(streams);
  return 0;
}
