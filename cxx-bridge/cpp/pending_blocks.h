// Freed blocks that streams may still be reading or writing.
//
// Rust has the queues, and says which event is asked next (src/pending.rs); here CUDA is asked. Invariants: a block leaves only
// when all its events are complete (I4); CUDA is never called under a lock (I5).
#pragma once

#include <c10/cuda/CUDAStream.h>
#include <c10/util/ScopeExit.h>

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

// Asks the streams' events, oldest first, with `is_over(event)`: of each stream up to the first that is not over, until `most` streams
// were found busy or all were asked. Skips streams that another thread asks. An event of which that throws is kept, or not as
// `keeps` says. Then `ended(stream, over)` has to call `PendingQueues::end`; `done(block)` follows each event that is over.
template <typename IsOver, typename Ended, typename Done>
void ask_pending(const PendingQueues& queues, std::size_t most, bool keeps, IsOver is_over, Ended ended, Done done) {
  std::size_t left = queues.streams();
  std::uint64_t stream = 0;
  std::size_t number = 0;
  std::size_t block = 0;
  while (most > 0 && queues.begin(left, stream, number, block)) {
    PooledEvent event(number, static_cast<c10::DeviceIndex>(stream));
    bool over = !keeps;
    {
      const auto asked = c10::make_scope_exit([&] {
        if (!over) {
          // The queue has it still.
          (void)event.release();
          --left;
          --most;
        }
        ended(stream, over);
      });
      over = is_over(event);
    }
    if (over) {
      done(block);
    }
  }
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

  // Calls `done(block)` for each event that is complete, as `ask_pending` finds them. An exception of `completed` is rethrown: as
  // with upstream, the event is dropped, and its block is never used again.
  template <typename Completed, typename Done>
  void reap(std::size_t most, Completed completed, Done done) {
    const auto ended = [this](std::uint64_t stream, bool over) {
      queues_.end(stream, over);
      if (over) {
        waiting_.fetch_sub(1, std::memory_order_relaxed);
      }
    };
    ask_pending(queues_, most, /*keeps=*/false, completed, ended, [&](std::size_t block) {
      done(reinterpret_cast<Block*>(block));
    });
  }

 private:
  const PendingQueues& queues_ = engine_pending();
  std::atomic<std::size_t> waiting_{0};
};

} // namespace pinbuddy
