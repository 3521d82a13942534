// What is counted of a stream's planned memory, as PyTorch counts its own: blocks, and the regions that they lie in.
//
// Knows no lock: whoever counts holds one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../upstream.h"
#include "failures.h"
#include "round_up.h"

namespace pinbuddy {

struct Counted {
  struct Blocks {
    Stat count;
    Stat bytes;
    Stat requested;
    // With those that other streams still use.
    Stat active;
    Stat active_bytes;
  };

  // What the allocator below counts as blocks.
  struct Regions {
    Stat count;
    Stat bytes;
    Stat requested;
  };

  Blocks blocks;
  Regions regions;
  // Those among them that are small to PyTorch, which counts these by themselves.
  Blocks small_blocks;
  Regions small_regions;
  // Those that are longer than what the allocator below splits: blocks, and regions.
  Stat oversize;
  Stat oversize_regions;
  // What it counts of failures, though only a region was not to be had.
  Tries refused;

  // A block of so many bytes, of which so many were requested, was handed out.
  void came(std::size_t bytes, std::size_t asked_for) {
    of(bytes, blocks, small_blocks, [&](Blocks& it) {
      it.count.increase(1);
      it.bytes.increase(bytes);
      it.requested.increase(asked_for);
      it.active.increase(1);
      it.active_bytes.increase(bytes);
    });
    if (C10_UNLIKELY(is_oversize(bytes))) {
      oversize.increase(1);
    }
  }

  // The program gave it up.
  void freed(std::size_t bytes) {
    of(bytes, blocks, small_blocks, [&](Blocks& it) {
      it.count.decrease(1);
      it.bytes.decrease(bytes);
    });
    if (C10_UNLIKELY(is_oversize(bytes))) {
      oversize.decrease(1);
    }
  }

  // Nobody uses it any more.
  void over(std::size_t bytes, std::size_t asked_for) {
    of(bytes, blocks, small_blocks, [&](Blocks& it) {
      it.requested.decrease(asked_for);
      it.active.decrease(1);
      it.active_bytes.decrease(bytes);
    });
  }

  // A region was taken from the allocator below, where it is `held` bytes long.
  void region_came(std::size_t held, std::size_t asked_for) {
    of(asked_for, regions, small_regions, [&](Regions& it) {
      it.count.increase(1);
      it.bytes.increase(held);
      it.requested.increase(asked_for);
    });
    if (is_oversize(held)) {
      oversize_regions.increase(1);
    }
  }

  void region_went(std::size_t held, std::size_t asked_for) {
    of(asked_for, regions, small_regions, [&](Regions& it) {
      it.count.decrease(1);
      it.bytes.decrease(held);
      it.requested.decrease(asked_for);
    });
    if (is_oversize(held)) {
      oversize_regions.decrease(1);
    }
  }

  // `act` is called with each count of one, and the same of the other.
  template <class Act>
  static void each(Counted& one, const Counted& other, Act act) {
    each(one.blocks, other.blocks, act);
    each(one.small_blocks, other.small_blocks, act);
    each(one.regions, other.regions, act);
    each(one.small_regions, other.small_regions, act);
    act(one.oversize, other.oversize);
    act(one.oversize_regions, other.oversize_regions);
  }

  void reset_peaks() {
    each(*this, *this, [](Stat& stat, const Stat&) { stat.reset_peak(); });
  }

  void reset_accumulated() {
    each(*this, *this, [](Stat& stat, const Stat&) { stat.reset_accumulated(); });
    refused = {};
  }

  // Of several streams: the most that each had may not have been at the same time.
  Counted& operator+=(const Counted& more) {
    each(*this, more, [](Stat& all, const Stat& one) {
      all.current += one.current;
      all.peak += one.peak;
      all.allocated += one.allocated;
      all.freed += one.freed;
    });
    refused += more.refused;
    return *this;
  }

 private:
  // Requests of up to so many bytes are small.
  static constexpr std::size_t kSmall = std::size_t{1} << 20;

  template <class Counts, class Act>
  static void of(std::size_t bytes, Counts& all, Counts& small, Act act) {
    act(all);
    if (C10_UNLIKELY(bytes <= kSmall)) {
      act(small);
    }
  }

  template <class Act>
  static void each(Blocks& one, const Blocks& other, Act act) {
    act(one.count, other.count);
    act(one.bytes, other.bytes);
    act(one.requested, other.requested);
    act(one.active, other.active);
    act(one.active_bytes, other.active_bytes);
  }

  template <class Act>
  static void each(Regions& one, const Regions& other, Act act) {
    act(one.count, other.count);
    act(one.bytes, other.bytes);
    act(one.requested, other.requested);
  }
};

} // namespace pinbuddy
