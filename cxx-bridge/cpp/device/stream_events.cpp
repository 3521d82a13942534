// The blocks of a stream's planned memory that other streams used: their places wait for events (stream_memory.h).
//
// Invariant: an error of CUDA's is thrown, and loses no block: its events are recorded, or asked for, again.
#include "../upstream.h"

#if PINBUDDY_TORCH_FROM(11)

#include "stream_memory.h"

#include <vector>

#include "../pending_blocks.h"

namespace pinbuddy {
namespace {

// The stream that `name_of` names.
c10::cuda::CUDAStream stream_named(std::uint64_t name) {
  return c10::cuda::CUDAStream::unpack3(
      static_cast<std::int64_t>(name) >> 8, static_cast<c10::DeviceIndex>(name), c10::DeviceType::CUDA);
}

} // namespace

void StreamMemory::use(void* address, c10::cuda::CUDAStream stream) {
  if (stream != stream_) {
    const bool is_known = plan_.uses(reinterpret_cast<std::size_t>(address), name_of(stream));
    TORCH_CHECK(is_known, "invalid device pointer: ", address);
  }
}

// The places of freed blocks wait for events on the streams that used them; during a capture, for its end first.
void StreamMemory::record() {
  const std::lock_guard turn(recording_);
  const EventGate::Pass pass(around_.events);
  if (!pass) {
    return;
  }
  std::size_t address = 0;
  rust::Vec<std::uint64_t> streams;
  while (plan_.next_to_record(address, streams)) {
    std::vector<PooledEvent> events;
    for (const std::uint64_t name : streams) {
      events.push_back(PooledEvent::record(stream_named(name)));
    }
    std::vector<std::size_t> numbers;
    for (PooledEvent& event : events) {
      numbers.push_back(event.release());
    }
    plan_.recorded(address, {numbers.data(), numbers.size()});
  }
}

void StreamMemory::settle(Settle how) {
  // Another thread may have all there is in hand. Who only asks comes back later; who is short of memory would find nothing, and
  // give up the plan or the request.
  std::unique_lock turn(settling_, std::defer_lock);
  keep_peaks();
  if (how == Settle::kWait) {
    turn.lock();
  } else if (!turn.try_lock()) {
    return;
  }
  record();
  settle_all(how);
  const auto idle = plan_.take_dropped();
  // The allocator below may wait for Python's lock.
  turn.unlock();
  give_back(idle);
}

// Events of a stream complete in order: one that is not complete answers for those behind it.
void StreamMemory::settle_all(Settle how) {
  const EventGate::Pass pass(around_.events);
  if (!pass) {
    return;
  }
  const PendingQueues& queues = plan_.pending();
  const auto is_over = [how](const PooledEvent& event) {
    if (how == Settle::kWait) {
      event.wait();
    }
    return how == Settle::kWait || event.completed();
  };
  const auto ended = [&queues](std::uint64_t stream, bool over) { queues.end(stream, over); };
  ask_pending(queues, PendingBlocks::kAll, /*keeps=*/true, is_over, ended, [this](std::size_t block) {
    if (const std::size_t requested = plan_.event_over(block); requested > 0) {
      note_completed(block, requested);
      plan_.done(block);
    }
  });
}

} // namespace pinbuddy

#endif
