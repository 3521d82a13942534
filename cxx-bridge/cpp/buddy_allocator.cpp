#include "buddy_allocator.h"

#include <c10/util/Exception.h>

#include <mutex>
#include <string>
#include <utility>

#include "fork.h"
#include "lock.h"
#include "settings.h"

namespace pinbuddy {
namespace {

using c10::cuda::CUDAStream;

// The unit in which the engine grants memory.
constexpr std::size_t kGranule = 4096;

// How many busy streams a request asks, beside those that are done with something: as many as stock's.
constexpr std::size_t kMostBusy = 1;

} // namespace

BuddyAllocator::BuddyAllocator()
    : threshold_(engine_threshold()), refusals_(engine_segment_bytes()) {}

std::pair<void*, void*> BuddyAllocator::allocate(std::size_t size) {
  if (size < threshold_ || size == 0) {
    if (C10_UNLIKELY(!pending_.empty())) {
      // As upstream's next request does, whatever its size.
      reap_beside(size);
    }
    return QuickBackend::allocate(size);
  }
  if (in_forked_child() || !serves_default_pool()) {
    return QuickBackend::allocate(size);
  }
  const bool tracing = isHistoryEnabled();
  // Before any lock: it may need Python's.
  auto context = tracing ? maybeGatherContext(RecordContext::STATE) : nullptr;
  reap_until(kMostBusy, context);
  // What PyTorch is told to unpin as soon as it is freed is not the engine's.
  Block* block = C10_LIKELY(size <= settings::pinned_max_cached_size()) ? take(size) : nullptr;
  if (block == nullptr) {
    return QuickBackend::allocate(size);
  }
  if (C10_UNLIKELY(tracing)) {
    {
      Lock guard(block->mutex_);
      block->context_when_allocated_ = context;
    }
    block->traced.store(true, std::memory_order_relaxed);
    trace(TraceEntry::ALLOC, block->ptr_, block->size_, std::move(context));
  }
  block->handed_out.store(true, std::memory_order_release);
  return {reinterpret_cast<void*>(block->grant.address), block};
}

void BuddyAllocator::reap_beside(std::size_t size) {
  if (size != 0 && !in_forked_child() && serves_default_pool()) {
    reap_until(
        kMostBusy, isHistoryEnabled() ? maybeGatherContext(RecordContext::STATE) : nullptr);
  }
}

Block* BuddyAllocator::take(std::size_t size) {
  // A size that overflows is none that is kept.
  const std::size_t bytes = (size + kGranule - 1) / kGranule * kGranule;
  bool again = false;
  Block* block = kept_.take_or_note(bytes, again);
  if (C10_UNLIKELY(block == nullptr)) {
    return take_from_engine(size, again);
  }
  refusals_.taken(*block);
  return block;
}

Block* BuddyAllocator::take_from_engine(std::size_t size, bool again) {
  if (refusals_.stand(size)) {
    // Upstream may have to pin: not while streams are done with a block.
    reap();
    if (refusals_.stand(size)) {
      return nullptr;
    }
  }
  if (!again && kept_.is_worth_a_sweep()) {
    give_back_kept();
  }
  // Beside what is kept, in a segment that is in use anyway: otherwise the sizes of a mix would sweep
  // each other away.
  Grant grant = engine_request_beside(size, kept_.count());
  if (grant.address == 0) {
    grant = make_room(size);
  }
  if (grant.address == 0) {
    if (!engine_enabled()) {
      // Retired: upstream serves from now on.
      kept_.close();
    }
    return nullptr;
  }
  Block* block = table_.take(grant);
  KeptBlocks::shelve_here(block, again);
  refusals_.granted(*block);
  return block;
}

Grant BuddyAllocator::make_room(std::size_t size) {
  // The engine chooses among all that is idle, as if nothing had been kept: what is freed meanwhile
  // goes to it too.
  const KeptBlocks::Shut shut(kept_);
  Grant grant{};
  if (give_back_kept()) {
    grant = engine_request_beside(size, kept_.count());
  }
  if (grant.address == 0) {
    // Nothing is pinned, and no segment begun, for a block that streams are done with.
    reap();
    const std::uint64_t changes = refusals_.changes();
    grant = engine_request(size);
    if (grant.address == 0) {
      refusals_.note(size, changes);
    }
  }
  return grant;
}

void BuddyAllocator::allocate_host_memory(std::size_t size, void** ptr) {
  for (bool first = true;; first = false) {
    try {
      CudaBackend::allocate_host_memory(size, ptr);
      return;
    } catch (c10::Error& error) {
      if (in_forked_child()) {
        throw;
      }
      give_back_kept();
      if (!first || !engine_give_way(size)) {
        error.add_context(std::string(engine_state_line()));
        throw;
      }
    }
  }
}

void BuddyAllocator::free(void* context) {
  auto* block = static_cast<Block*>(context);
  if (block != nullptr && block->engine_owned) {
    free_engine_block(block);
  } else {
    QuickBackend::free(context);
  }
}

void BuddyAllocator::free_engine_block(Block* block) {
  if (in_forked_child()) {
    return;
  }
  std::shared_ptr<c10::GatheredContext> context;
  if (C10_UNLIKELY(isHistoryEnabled())) {
    context = maybeGatherContext(RecordContext::ALL);
    auto shown = context;
    if (shown == nullptr) {
      Lock guard(block->mutex_);
      shown = block->context_when_allocated_;
    }
    trace(TraceEntry::FREE_REQUESTED, block->ptr_, block->size_, std::move(shown));
  }
  block->handed_out.store(false, std::memory_order_relaxed);
  // Who frees a block is the last of its users: what they recorded happened before.
  if (block->on_streams.load(std::memory_order_relaxed)) {
    free_with_events(block);
  } else {
    end_use(block, context);
  }
}

void BuddyAllocator::end_use(
    Block* block,
    const std::shared_ptr<c10::GatheredContext>& context) {
  end_trace(block, context);
  refusals_.freed(*block);
  if (C10_UNLIKELY(!kept_.keep(block))) {
    give_back(block);
  }
}

void BuddyAllocator::free_with_events(Block* block) {
  ska::flat_hash_set<CUDAStream> streams;
  {
    Lock guard(block->mutex_);
    streams.swap(block->streams_);
    block->event_count_ = streams.size();
    block->on_streams.store(false, std::memory_order_relaxed);
  }
  engine_defer(block->grant);
  // Destructors of tensors lead here, so nothing may be thrown. A block whose events cannot be
  // recorded keeps its count and is never used again: lost memory is better than a wrong reuse.
  try {
    for (const CUDAStream stream : streams) {
      // What a capture records runs at each replay, and no event tells when the last one is over:
      // the block keeps its count. Other libraries' captures are not PyTorch's to know of.
      if (stream_is_capturing(stream)) {
        continue;
      }
      pending_.push(stream, PooledEvent::record(stream), block);
    }
  } catch (const std::exception& error) {
    TORCH_WARN_ONCE(
        "pinbuddy could not record an event for a freed pinned block, which will not be used "
        "again: ",
        error.what());
  }
}

void BuddyAllocator::end_trace(
    Block* block,
    const std::shared_ptr<c10::GatheredContext>& context) {
  // Also where recording has ended since: the context is not the next user's.
  if (C10_UNLIKELY(isHistoryEnabled() || block->traced.load(std::memory_order_relaxed))) {
    std::shared_ptr<c10::GatheredContext> shown;
    {
      Lock guard(block->mutex_);
      shown.swap(block->context_when_allocated_);
    }
    if (context != nullptr) {
      shown = context;
    }
    block->traced.store(false, std::memory_order_relaxed);
    // Writes nothing while nothing is recorded.
    trace(TraceEntry::FREE_COMPLETED, block->ptr_, block->size_, std::move(shown));
  }
}

void BuddyAllocator::give_back(Block* block) {
  const Grant grant = block->grant;
  // Out of the table first: another thread may get the same address as soon as the engine has it.
  table_.put(block);
  engine_release(grant);
  refusals_.given_back();
}

bool BuddyAllocator::give_back_kept() {
  if (in_forked_child()) {
    return false;
  }
  KeptBlocks::Sweep sweep(kept_);
  engine_settle(sweep.counted());
  while (Block* block = sweep.next()) {
    give_back(block);
  }
  return sweep.counted().blocks != 0;
}

void BuddyAllocator::reap() {
  reap_until(PendingBlocks::kAll, nullptr);
}

void BuddyAllocator::reap_until(
    std::size_t most_busy,
    const std::shared_ptr<c10::GatheredContext>& context) {
  if (pending_.empty() || in_forked_child()) {
    return;
  }
  pending_.reap(
      most_busy,
      [this](PooledEvent& event) { return CudaBackend::query_event(event); },
      [this, &context](Block* block) {
        bool last = false;
        {
          Lock guard(block->mutex_);
          last = --block->event_count_ == 0;
        }
        if (last) {
          // From pending to live for the engine: before another thread can have it.
          engine_keep(block->grant);
          end_use(block, context);
        }
      });
}

bool BuddyAllocator::record_event(void* ptr, void* context, AnyStream stream) {
  Block* block = in_forked_child() ? nullptr : table_.find(ptr, context);
  if (block == nullptr) {
    return QuickBackend::record_event(ptr, context, stream);
  }
  Lock guard(block->mutex_);
  TORCH_INTERNAL_ASSERT(block->handed_out.load(std::memory_order_relaxed));
  block->streams_.insert(CUDAStream(stream));
  block->on_streams.store(true, std::memory_order_relaxed);
  return true;
}

void BuddyAllocator::empty_cache() {
  QuickBackend::empty_cache();
  reap();
  give_back_kept();
  kept_.forget();
  refusals_.forget();
  engine_empty_cache();
}

void BuddyAllocator::before_fork() {
  QuickBackend::before_fork();
  kept_.before_fork();
}

void BuddyAllocator::after_fork(bool in_child) {
  kept_.after_fork(in_child);
  QuickBackend::after_fork(in_child);
}

} // namespace pinbuddy
