// A block that either the engine or upstream's lists hold.
//
// One type for both, so that a context pointer can be told apart by looking at it and upstream's
// record_event, events and segment list keep working on it.
#pragma once

#include <atomic>

#include "pinbuddy-bridge/src/lib.rs.h"
#include "upstream.h"

namespace pinbuddy {

// On cache lines of its own, since blocks of several threads lie side by side in the heap.
struct alignas(64) Block : UpstreamBlock {
  using UpstreamBlock::UpstreamBlock;

  // What follows is on one line: all that most requests and frees look at.

  // Whether the engine owns the memory, and then where. Both are set before the block is handed
  // out and stay until it is wholly free.
  alignas(64) bool engine_owned = false;

  // Whether a user has it; and whether `streams_` and `context_when_allocated_`, which the mutex
  // guards, have anything since.
  std::atomic<bool> handed_out{false};
  std::atomic<bool> on_streams{false};
  std::atomic<bool> traced{false};

  // Whether it is cached once it is freed, and by which thread's cache; there it is linked with the next
  // of its size and, the top one, with that of the next size.
  bool cacheable = false;
  std::uint16_t cache = 0;
  Block* next_cached = nullptr;
  Block* next_size = nullptr;

  Grant grant{};

  // Of which refusal it was last told, and whether it counts as freed since (`Refusals`).
  std::uint32_t refusal = 0;
  bool freed_since = false;
};

} // namespace pinbuddy
