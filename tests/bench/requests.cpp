#include "requests.h"

#include "clock.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>

namespace bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kPage = 4096;

// A stream other than the default one, as for an offload's copies.
c10::Stream side_stream() {
  static const c10::Stream stream =
      c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA)
          .getStreamFromGlobalPool(c10::Device(c10::DeviceType::CUDA, 0));
  return stream;
}

// The same numbers with every standard library.
std::size_t below(std::mt19937_64& random, std::size_t bound) {
  return static_cast<std::size_t>(random() % bound);
}

// Each multiple of a page from `least` to `most`, shuffled.
std::vector<std::size_t> each_size_once(std::size_t least, std::size_t most) {
  std::vector<std::size_t> sizes((most - least) / kPage);
  std::iota(sizes.begin(), sizes.end(), least / kPage);
  std::mt19937_64 random(15);
  for (std::size_t i = sizes.size(); i > 1; --i) {
    std::swap(sizes[i - 1], sizes[below(random, i)]);
  }
  for (std::size_t& size : sizes) {
    size *= kPage;
  }
  return sizes;
}

std::vector<std::size_t> mixed_sizes() {
  std::mt19937_64 random(4);
  std::vector<std::size_t> sizes(64);
  for (std::size_t& size : sizes) {
    // Log-uniform over the fourteen doublings from 4 KiB to 64 MiB.
    const double doublings = static_cast<double>(below(random, 14000)) / 1000;
    size = static_cast<std::size_t>(static_cast<double>(kPage) * std::exp2(doublings));
  }
  return sizes;
}

} // namespace

Requests requests(const std::string& pattern) {
  if (pattern == "event") {
    return {{8 * kMiB}, 1, true};
  }
  if (pattern == "small-event") {
    return {{64 * 1024}, 1, true};
  }
  if (pattern == "mixed") {
    return {mixed_sizes(), 8, false};
  }
  if (pattern == "miss") {
    return {each_size_once(4 * kMiB, 64 * kMiB), 1, false};
  }
  if (pattern == "small-miss") {
    return {each_size_once(kPage, 4 * kMiB), 1, false};
  }
  if (pattern == "never-again") {
    return {each_size_once(4 * kMiB, 32 * kMiB), 16, false};
  }
  if (pattern == "50-sizes") {
    // All different, and none a power of two.
    std::vector<std::size_t> sizes(50);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sizes[i] = 4 * kMiB + (i + 1) * 300 * kPage;
    }
    return {sizes, sizes.size(), false, true};
  }
  if (pattern == "large-mixed") {
    std::mt19937_64 random(9);
    std::vector<std::size_t> sizes(96);
    for (std::size_t& size : sizes) {
      size = 2 * kMiB + below(random, 12'000) * kPage;
    }
    return {sizes, 8, false};
  }
  if (pattern == "50-random") {
    // The same fifty in random order: a freed block seldom has the next size.
    std::mt19937_64 random(50);
    std::vector<std::size_t> sizes(10'000);
    for (std::size_t& size : sizes) {
      size = 4 * kMiB + (below(random, 50) + 1) * 300 * kPage;
    }
    return {sizes, 50, false};
  }
  if (pattern == "400-sizes") {
    std::vector<std::size_t> sizes(400);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sizes[i] = (9 + i % 7) * kMiB;
    }
    return {sizes, sizes.size(), false, true};
  }
  if (const std::size_t cross = pattern.find('x'); cross != std::string::npos) {
    return {{std::stoull(pattern.substr(cross + 1))}, std::stoull(pattern), false, true};
  }
  const std::size_t bytes = std::stoull(pattern);
  if (bytes == 0) {
    throw std::invalid_argument("a request of no bytes");
  }
  return {{bytes}, 1, false};
}

Loop::Loop(at::HostAllocator* allocator, Requests requests)
    : allocator_(allocator), requests_(std::move(requests)), live_(requests_.window) {}

void Loop::pair() {
  at::DataPtr& block = live_[next_ % live_.size()];
  block.clear();
  block = allocator_->allocate(requests_.sizes[next_ % requests_.sizes.size()]);
  if (requests_.event) {
    allocator_->record_event(block.get(), block.get_context(), side_stream());
  }
  ++next_;
}

void Loop::batch() {
  for (std::size_t i = 0; i < live_.size(); ++i) {
    live_[i] = allocator_->allocate(requests_.sizes[i % requests_.sizes.size()]);
  }
  for (std::size_t i = live_.size(); i > 0; --i) {
    live_[i - 1].clear();
  }
}

void Loop::run(long pairs) {
  if (requests_.batches) {
    const auto each = static_cast<long>(live_.size());
    for (long i = 0; i + each <= pairs; i += each) {
      batch();
    }
    return;
  }
  for (long i = 0; i < pairs; ++i) {
    pair();
  }
}

std::vector<double> Loop::run_timed(long pairs) {
  std::vector<Ticks> ticks(static_cast<std::size_t>(pairs));
  for (Ticks& tick : ticks) {
    const Ticks start = ticks_now();
    pair();
    tick = ticks_now() - start;
  }
  const Ticks cost = ticks_of_asking();
  std::vector<double> nanoseconds(ticks.size());
  std::transform(ticks.begin(), ticks.end(), nanoseconds.begin(), [cost](Ticks it) {
    return in_nanoseconds(it > cost ? it - cost : 0);
  });
  return nanoseconds;
}

} // namespace bench
