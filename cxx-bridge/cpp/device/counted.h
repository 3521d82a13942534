// What is counted of a stream's planned memory, as PyTorch counts its own: blocks, and the regions that they lie in.
//
// All count with PyTorch's pool for large blocks, whose memory regions are. Knows no lock: whoever counts holds one.
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
  // Those that are longer than what the allocator below splits: blocks, and regions.
  Stat oversize;
  Stat oversize_regions;
  // What it counts of failures, though only a region was not to be had.
  Tries refused;

  // A block of so many bytes, of which so many were requested, was handed out.
  void came(std::size_t bytes, std::size_t asked_for) {
    blocks.count.increase(1);
    blocks.bytes.increase(bytes);
    blocks.requested.increase(asked_for);
    blocks.active.increase(1);
    blocks.active_bytes.increase(bytes);
    if (C10_UNLIKELY(is_oversize(bytes))) {
      oversize.increase(1);
    }
  }

  // The program gave it up.
  void freed(std::size_t bytes) {
    blocks.count.decrease(1);
    blocks.bytes.decrease(bytes);
    if (C10_UNLIKELY(is_oversize(bytes))) {
      oversize.decrease(1);
    }
  }

  // Nobody uses it any more.
  void over(std::size_t bytes, std::size_t asked_for) {
    blocks.requested.decrease(asked_for);
    blocks.active.decrease(1);
    blocks.active_bytes.decrease(bytes);
  }

  // A region was taken from the allocator below, where it is `held` bytes long.
  void region_came(std::size_t held, std::size_t asked_for) {
    regions.count.increase(1);
    regions.bytes.increase(held);
    regions.requested.increase(asked_for);
    if (is_oversize(held)) {
      oversize_regions.increase(1);
    }
  }

  void region_went(std::size_t held, std::size_t asked_for) {
    regions.count.decrease(1);
    regions.bytes.decrease(held);
    regions.requested.decrease(asked_for);
    if (is_oversize(held)) {
      oversize_regions.decrease(1);
    }
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
  // `act` is called with each count of one, and the same of the other.
  template <class Act>
  static void each(Counted& one, const Counted& other, Act act) {
    act(one.blocks.count, other.blocks.count);
    act(one.blocks.bytes, other.blocks.bytes);
    act(one.blocks.requested, other.blocks.requested);
    act(one.blocks.active, other.blocks.active);
    act(one.blocks.active_bytes, other.blocks.active_bytes);
    act(one.regions.count, other.regions.count);
    act(one.regions.bytes, other.regions.bytes);
    act(one.regions.requested, other.regions.requested);
    act(one.oversize, other.oversize);
    act(one.oversize_regions, other.oversize_regions);
  }
};

} // namespace pinbuddy
