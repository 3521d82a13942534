// What is recorded of requests, frees and streams, as entries of the thread's ring.
//
// Off, it costs a request one branch on a flag beside the threshold, and a free one on a flag in the block. Invariant:
// `Block::recorded` is set from a request that was recorded to the block's end, and then the block names its allocation.
// So an end is recorded only if the beginning was. Knows neither sinks nor files, which are Rust's.
#pragma once

#include <c10/cuda/CUDAStream.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "block.h"
#include "rings.h"

namespace pinbuddy::recording {

// The number of the recording under way, which allocations have in their upper 16 bits; 0 while there is none. Entries
// of an earlier one may still lie in rings.
inline std::atomic<std::uint16_t> session{0};

// Whether Rust was told of the first request.
inline std::atomic<bool> begun{false};

// What an entry says; in its upper 4 bits. Rust reads it (src/record/source.rs).
enum class Kind : std::uint64_t {
  kWait = 0, // nanoseconds; of an allocation, or of no request
  kRequest = 1, // bytes
  kFree = 2, // how many `kDone` will follow
  kDone = 3,
  kUse = 4, // the stream
  kClear = 5,
  kIteration = 6,
  kPrivateRequest = 7, // bytes; the engine never serves it
  // From here on of device memory, which the highest bit says.
  // device/device_trace.cpp: whose, for which stream, and bytes; the number of a stream; and bytes.
  kDeviceRequest = 8,
  kDeviceUse = 9,
  kSegmentAlloc = 10,
  kSegmentFree = 11,
  // As `kFree` and `kDone`.
  kDeviceFree = 12,
  kDeviceDone = 13,
};

constexpr unsigned kKindShift = 60;
constexpr unsigned kSessionShift = 48;
static_assert(static_cast<std::uint64_t>(Kind::kDeviceRequest) << kKindShift == std::uint64_t{1} << Losses::kDeviceShift);

inline std::uint64_t entry(Kind kind, std::uint64_t value) {
  return static_cast<std::uint64_t>(kind) << kKindShift | value;
}

// What the ring's thread has waited for the driver, as an entry of this allocation or of none.
[[gnu::cold, gnu::noinline]] inline void end_wait(Ring& ring, std::uint64_t allocation) {
  ring.push(allocation, entry(Kind::kWait, ring.take_waited()), 0);
}

// `block` serves a request of so many bytes; `kind` is `kRequest` or `kPrivateRequest`.
inline void request(Block* block, Kind kind, std::size_t bytes) {
  const std::uint64_t now = session.load(std::memory_order_relaxed);
  const std::uint64_t what = entry(kind, bytes);
  Ring* ring = Rings::own();
  if (C10_UNLIKELY(ring == nullptr)) {
    Rings::lose(what);
    return;
  }
  const std::uint64_t allocation = now << kSessionShift | ring->number();
  const bool kept = ring->push(allocation, what, Ring::kReserve);
  if (C10_LIKELY(kept)) {
    block->allocation = allocation;
    block->recorded = true;
  }
  if (C10_UNLIKELY(ring->has_waited())) {
    end_wait(*ring, kept ? allocation : now << kSessionShift);
  }
}

inline void push(std::uint64_t allocation, Kind kind, std::uint64_t value) {
  // Of this recording.
  const std::uint16_t now = session.load(std::memory_order_relaxed);
  if (now == 0 || allocation >> kSessionShift != now) {
    return;
  }
  if (Ring* ring = Rings::own(); C10_LIKELY(ring != nullptr)) {
    ring->push(allocation, entry(kind, value), 0);
  } else {
    Rings::lose(entry(kind, value));
  }
}

// A recorded block is freed; `pending` times `done` follows, and none if it is 0.
inline void free(Block* block, std::size_t pending) {
  block->recorded = pending != 0;
  push(block->allocation, Kind::kFree, pending);
}

// One of the events on a freed block is complete.
inline void done(std::uint64_t allocation) {
  push(allocation, Kind::kDone, 0);
}

inline void use(const Block& block, c10::cuda::CUDAStream stream) {
  // Unique for streams of PyTorch's pools; external ones are addresses.
  const auto device = static_cast<std::uint64_t>(static_cast<std::uint8_t>(stream.device_index()));
  const auto id = static_cast<std::uint64_t>(stream.id());
  constexpr std::uint64_t kMask = (std::uint64_t{1} << kKindShift) - 1;
  push(block.allocation, Kind::kUse, (id << 8 ^ device) & kMask);
}

// `kClear` or `kIteration`.
inline void mark(Kind kind) {
  push(std::uint64_t{session.load(std::memory_order_relaxed)} << kSessionShift, kind, 0);
}

// This thread begins to wait for the driver. From now on it has a number, so threads that wait at the same time are told
// apart, though the first of them may end before the others are served.
inline void will_wait() {
  if (session.load(std::memory_order_relaxed) != 0) {
    Rings::own();
  }
}

// This thread has waited so many nanoseconds for the driver: in a request, whose entry is followed by that, or else in a
// call that gave memory back. What a request waited that failed is the next one's.
inline void waited(std::uint64_t nanoseconds, bool in_request) {
  const std::uint64_t now = session.load(std::memory_order_relaxed);
  Ring* ring = now != 0 ? Rings::own() : nullptr;
  if (ring != nullptr && in_request) {
    ring->wait(nanoseconds);
  } else {
    push(now << kSessionShift, Kind::kWait, nanoseconds);
  }
}

// The recorded block of upstream's that this thread frees; 0: none. Upstream's call to record its events does not say.
inline constinit thread_local std::uint64_t freeing = 0;

} // namespace pinbuddy::recording
