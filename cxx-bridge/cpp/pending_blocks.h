// Freed blocks that streams may still be reading or writing.
//
// Rust has the queues, and says which event is asked next (src/pending.rs); here CUDA is asked. Invariants: a block leaves only
// when all its events are complete (I4); CUDA is never called under a lock (I5).
#pragma once

#include <c10/cuda/CUDAStream.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "block.h"
#include "event_pool.h"

namespace pinbuddy {

// Unique for streams of PyTorch's pools; external ones are addresses. The lowest byte is the device.
inline std::uint64_t name_of(c10::cuda::CUDAStream stream) {
  const auto device = static_cast<std::uint64_t>(static_cast<std::uint8_t>(stream.device_index()));
  return static_cast<std::uint64_t>(stream.id()) << 8 | device;
}

class PendingBlocks {
 public:
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

  // Has `block` wait for one more event, which was recorded on `stream`.
  void push(c10::cuda::CUDAStream stream, PooledEvent event, Block* block) {
    // Counted first, so that the count is never below the queues' contents.
    waiting_.fetch_add(1, std::memory_order_relaxed);
    queues_.push(name_of(stream), event.release(), reinterpret_cast<std::size_t>(block));
  }

  // Whether nothing waits: one relaxed load, since every request asks.
  bool empty() const {
    return waiting_.load(std::memory_order_relaxed) == 0;
  }

  // Queries each stream's events with `completed(event)`, oldest first, up to the first that is not
  // complete, and calls `done(block)` for each that is. Ends once `most` streams were found busy or all were
  // queried; skips streams that another thread is querying. An exception of `completed` is rethrown: as with
  // upstream, the event is dropped, and its block is never used again.
  template <typename Completed, typename Done>
  void reap(std::size_t most, Completed completed, Done done) {
    std::size_t left = queues_.streams();
    std::uint64_t stream = 0;
    std::size_t handle = 0;
    std::size_t block = 0;
    while (most > 0 && queues_.begin(left, stream, handle, block)) {
      PooledEvent event(handle, static_cast<c10::DeviceIndex>(stream));
      bool ready = false;
      try {
        ready = completed(event);
      } catch (...) {
        end(stream);
        throw;
      }
      if (ready) {
        end(stream);
        done(reinterpret_cast<Block*>(block));
      } else {
        // The queue has it still.
        (void)event.release();
        queues_.end(stream, /*over=*/false);
        --left;
        --most;
      }
    }
  }

 private:
  void end(std::uint64_t stream) {
    queues_.end(stream, /*over=*/true);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }

  const PendingQueues& queues_ = engine_pending();
  std::atomic<std::size_t> waiting_{0};
};

} // namespace pinbuddy
