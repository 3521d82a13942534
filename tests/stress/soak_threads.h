// The threads of a soak: each allocates, copies, hands over and frees blocks, and is followed by another.
#pragma once

#include "exchange.h"
#include "soak_blocks.h"
#include "soak_copies.h"

#include <deque>
#include <string_view>

using Clock = std::chrono::steady_clock;

// With PINBUDDY_SOAK_DEFECT=overwrite threads now and then write where they must not.
inline bool overwrites() {
  static const char* const defect = std::getenv("PINBUDDY_SOAK_DEFECT");
  return defect != nullptr && std::string_view(defect) == "overwrite";
}

inline void use(Marked& block, std::mt19937_64& random) {
  const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
  const std::size_t streams = random() % 8 < 6 ? 1 : 3;
  for (std::size_t i = 0; i < streams; ++i) {
    block.record(cuda.getStreamFromGlobalPool(cuda.getDevice()));
    ++totals.recorded;
  }
}

// A block whose content is on its way.
struct Arrival {
  Counted block;
  Lane* lane;
};

inline void free_in_flight(Counted block, bool is_checked) {
  totals.freed_in_flight += is_in_flight(block.block());
  if (!is_checked) {
    block.block().let_go();
  }
}

// A block's content goes to the device and comes back in another block of its size. The first is freed meanwhile, here or by
// another thread, and now and then the second as well: who is handed their memory too early finds it overwritten, or
// overwrites what is sent.
inline std::optional<Arrival> travel(
    Counted source, Lanes& lanes, std::mt19937_64& random, Exchange<Counted>& handed) {
  Lane& lane = lanes.any(random);
  const std::lock_guard<std::mutex> guard(lane.taken);
  const std::size_t bytes = source.block().bytes();
  const std::uint64_t mark = source.block().mark();
  lane.send(source.block());
  ++totals.copies;
  if (random() % 4 == 0) {
    handed.put(std::move(source));
  } else {
    free_in_flight(std::move(source), true);
  }
  std::optional<Counted> target = allocate(bytes);
  if (!target) {
    return std::nullopt;
  }
  lane.fetch(target->block(), mark);
  ++totals.copies;
  if (random() % 3 == 0) {
    free_in_flight(std::move(*target), false);
    return std::nullopt;
  }
  return Arrival{std::move(*target), &lane};
}

inline bool may_travel(std::size_t bytes, std::mt19937_64& random) {
  return bytes <= Lane::kBytes && random() % (bytes <= Lane::kBytes / 4 ? 3 : 24) == 0;
}

// A thread's life: some hundred blocks, and then another one's in its place.
inline void live(Clock::time_point until, std::uint64_t seed, Lanes& lanes, Exchange<Counted>& handed) {
  ++totals.threads;
  std::mt19937_64 random(seed);
  std::vector<Counted> held;
  std::deque<Arrival> arrivals;
  const auto settle = [&] {
    arrivals.front().lane->wait();
    arrivals.front().block.block().check();
    ++totals.arrived;
    held.push_back(std::move(arrivals.front().block));
    arrivals.pop_front();
  };
  const std::size_t rounds = 100 + random() % 900;
  for (std::size_t round = 0; round < rounds && Clock::now() < until; ++round) {
    const std::size_t bytes = any_size(random);
    if (auto block = allocate(bytes)) {
      held.push_back(std::move(*block));
      if (random() % 4 == 0) {
        use(held.back().block(), random);
      }
      if (overwrites() && random() % 16 == 0) {
        held.back().block().damage();
      } else if (may_travel(bytes, random)) {
        Counted source(std::move(held.back()));
        held.pop_back();
        if (auto arrival = travel(std::move(source), lanes, random, handed)) {
          arrivals.push_back(std::move(*arrival));
        }
      }
    }
    while (arrivals.size() > random() % 8) {
      settle();
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
  while (!arrivals.empty()) {
    settle();
  }
}

inline void lives(Clock::time_point until, std::uint64_t seed, Lanes& lanes, Exchange<Counted>& handed) {
  for (std::uint64_t life = 0; Clock::now() < until; ++life) {
    std::thread(live, until, seed + life * 1000, std::ref(lanes), std::ref(handed)).join();
  }
}
