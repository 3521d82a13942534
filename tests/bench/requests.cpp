#include "requests.h"

#include "clock.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>
#include <map>
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

// So many sizes, each drawn from what begins at `seed`.
template <typename Draw>
std::vector<std::size_t> drawn(std::size_t count, unsigned seed, Draw draw) {
  std::mt19937_64 random(seed);
  std::vector<std::size_t> sizes(count);
  std::generate(sizes.begin(), sizes.end(), [&] { return draw(random); });
  return sizes;
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

// Log-uniform over the fourteen doublings from 4 KiB to 64 MiB.
std::size_t mixed(std::mt19937_64& random) {
  const double doublings = static_cast<double>(below(random, 14000)) / 1000;
  return static_cast<std::size_t>(static_cast<double>(kPage) * std::exp2(doublings));
}

// Of fifty sizes of 5 to 63 MiB, all different, and none a power of two.
std::size_t of_fifty(std::size_t number) {
  return 4 * kMiB + (number + 1) * 300 * kPage;
}

const std::map<std::string, Requests>& patterns() {
  const auto large = [](auto& random) { return 2 * kMiB + below(random, 12'000) * kPage; };
  const auto any_of_fifty = [](auto& random) { return of_fifty(below(random, 50)); };
  const auto each_of_fifty = [i = 0](auto&) mutable { return of_fifty(i++); };
  const auto nine_to_fifteen = [i = 0](auto&) mutable { return (9 + i++ % 7) * kMiB; };
  static const std::map<std::string, Requests> all{
      // Used on a stream.
      {"event", {{8 * kMiB}, 1, true}},
      {"small-event", {{64 * 1024}, 1, true}},
      // Several live at a time.
      {"mixed", {drawn(64, 4, mixed), 8}},
      {"large-mixed", {drawn(96, 9, large), 8}},
      // A freed block seldom has the next size.
      {"50-random", {drawn(10'000, 50, any_of_fifty), 50}},
      // No size twice within a thousand, so that no list of freed blocks of the same size can serve them.
      {"miss", {each_size_once(4 * kMiB, 64 * kMiB), 1}},
      {"small-miss", {each_size_once(kPage, 4 * kMiB), 1}},
      {"never-again", {each_size_once(4 * kMiB, 32 * kMiB), 16}},
      // In batches.
      {"50-sizes", {drawn(50, 0, each_of_fifty), 50, false, true}},
      {"400-sizes", {drawn(400, 0, nine_to_fifteen), 400, false, true}}};
  return all;
}

} // namespace

Requests requests(const std::string& pattern) {
  if (const auto known = patterns().find(pattern); known != patterns().end()) {
    return known->second;
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

Loop::Loop(c10::Allocator* allocator, Requests requests)
    : allocator_(allocator), requests_(std::move(requests)), live_(requests_.window) {}

void Loop::pair() {
  at::DataPtr& block = live_[next_ % live_.size()];
  block.clear();
  block = allocator_->allocate(requests_.sizes[next_ % requests_.sizes.size()]);
  if (requests_.event) {
    auto* const host = static_cast<at::HostAllocator*>(allocator_);
    host->record_event(block.get(), block.get_context(), side_stream());
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
  if (live_.size() == 1 && requests_.sizes.size() == 1 && !requests_.event) {
    // No work of ours, which would hide a part of the ratio.
    live_.front().clear();
    for (long i = 0; i < pairs; ++i) {
      allocator_->allocate(requests_.sizes.front());
    }
    return;
  }
  for (long i = 0; i < pairs; ++i) {
    pair();
  }
}

std::vector<double> Loop::run_timed(long pairs) {
  std::vector<double> nanoseconds(static_cast<std::size_t>(pairs));
  for (double& it : nanoseconds) {
    const Ticks start = ticks_now();
    pair();
    it = nanoseconds_since(start);
  }
  return nanoseconds;
}

} // namespace bench
