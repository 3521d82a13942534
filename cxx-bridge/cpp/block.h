// A block of the engine's or of upstream's lists.
//
// One type for both, so that a context pointer tells which it is, and upstream's record_event, events
// and segment list work on it.
#pragma once

#include <atomic>

#include "pinbuddy-bridge/src/lib.rs.h"
#include "upstream.h"

namespace pinbuddy {

// On cache lines of its own, since blocks of several threads are neighbours in the heap.
struct alignas(64) Block : UpstreamBlock {
  using UpstreamBlock::UpstreamBlock;

  // These fields share a cache line: most requests and frees read no others.

  // Whether the engine owns the memory, and its grant. Both are set before the block is handed out, and
  // stay until it is released.
  alignas(64) bool engine_owned = false;

  // Whether it is that of a plan's slot, and stays so.
  bool planned = false;

  // Whether a user has it; and whether `streams_` and `context_when_allocated_`, which the mutex
  // guards, have anything since.
  std::atomic<bool> handed_out{false};
  std::atomic<bool> on_streams{false};
  std::atomic<bool> traced{false};

  // Whether it is cached once it is freed, and in which thread cache. There it is linked to the next block
  // of its size; the top one also to the top of the next size.
  bool cacheable = false;
  std::uint16_t cache = 0;
  union {
    Block* next_cached = nullptr;
    // While it is not cached, and `recorded`: the number of its allocation.
    std::uint64_t allocation;
  };
  Block* next_size = nullptr;

  Grant grant{};

  // The last refusal that it has seen, and whether it counts as freed since (`Refusals`).
  std::uint32_t refusal = 0;
  bool freed_since = false;

  // Whether its request was recorded, and its end was not yet.
  bool recorded = false;
};

} // namespace pinbuddy
