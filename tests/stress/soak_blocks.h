// The blocks of a soak: how many there may be, what is counted of them, and what may refuse them.
#pragma once

#include "marked.h"

#include <cmath>
#include <cstring>
#include <random>

constexpr std::size_t kMostLive = 3ul << 30;
constexpr std::size_t kLargest = 2ul << 30;

struct Totals {
  std::atomic<std::uint64_t> blocks{0};
  std::atomic<std::uint64_t> large{0};
  std::atomic<std::uint64_t> recorded{0};
  std::atomic<std::uint64_t> copies{0};
  std::atomic<std::uint64_t> arrived{0};
  std::atomic<std::uint64_t> freed_in_flight{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> threads{0};
  std::atomic<std::uint64_t> forks{0};
  // Children that found their parent's mark damaged.
  std::atomic<std::uint64_t> lost_in_children{0};
  std::atomic<std::uint64_t> clears{0};
};
inline Totals totals;

// How much more may be live: what is asked for fits a machine with a few gigabytes.
inline std::atomic<std::size_t> live_bytes{0};

// What the machine, the budget or a fault refuses is counted; nothing is lost by it. The error is stock's.
inline void refused(const std::exception& why) {
  ++totals.refused;
  if (std::strstr(why.what(), "CUDA error") == nullptr) {
    fail(why.what(), 0);
  }
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

inline std::optional<Counted> allocate(std::size_t bytes) {
  if (live_bytes.fetch_add(bytes) + bytes > kMostLive) {
    live_bytes -= bytes;
    return std::nullopt;
  }
  try {
    std::optional<Counted> made(std::in_place, bytes);
    ++totals.blocks;
    totals.large += bytes >= (64ul << 20);
    return made;
  } catch (const std::exception& why) {
    live_bytes -= bytes;
    refused(why);
    return std::nullopt;
  }
}

inline std::size_t any_size(std::mt19937_64& random) {
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
