#include "buddy_allocator.h"

#include <c10/util/Exception.h>

#include <mutex>
#include <string>
#include <utility>

#include "fork.h"
#include "lock.h"

namespace pinbuddy {
namespace {

using c10::cuda::CUDAStream;

// The unit in which the engine grants memory.
constexpr std::size_t kGranule = 4096;

// What a thread may keep: more than a step's tensors of one kind take, and in time for the next.
constexpr std::size_t kKeptSegments = 4;

} // namespace

BuddyAllocator::BuddyAllocator()
    : threshold_(engine_threshold()), kept_(kKeptSegments * engine_segment_bytes()) {}

std::pair<void*, void*> BuddyAllocator::allocate(std::size_t size) {
  if (size < threshold_ || size == 0 || in_forked_child() || !serves_default_pool()) {
    return QuickBackend::allocate(size);
  }
  const bool tracing = isHistoryEnabled();
  // Before any lock: it may need Python's.
  auto context = tracing ? maybeGatherContext(RecordContext::STATE) : nullptr;
  reap();
  Block* block = take(size);
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

Block* BuddyAllocator::take(std::size_t size) {
  // A size that overflows is none that is kept.
  const std::size_t bytes = (size + kGranule - 1) / kGranule * kGranule;
  bool again = false;
  Block* block = kept_.take_or_note(bytes, again);
  return C10_LIKELY(block != nullptr) ? block : take_from_engine(size, again);
}

Block* BuddyAllocator::take_from_engine(std::size_t size, bool again) {
  Grant grant{};
  // A size that comes again and again gets a place beside what is kept, in a segment that is in use.
  if (again && !kept_.full_here()) {
    grant = engine_request_beside(size, kept_.count());
  }
  // For others the engine chooses among all that is idle, as if nothing had been kept: what is freed
  // meanwhile goes to it too.
  if (grant.address == 0) {
    const KeptBlocks::Shut shut(kept_);
    give_back_kept();
    grant = engine_request(size);
  }
  if (grant.address == 0) {
    if (!engine_enabled()) {
      // Retired: upstream serves from now on.
      kept_.close();
    }
    return nullptr;
  }
  Block* block = table_.take(grant);
  KeptBlocks::shelve_here(block);
  return block;
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
      if (!first || !engine_give_way()) {
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
  if (C10_UNLIKELY(isHistoryEnabled())) {
    auto context = maybeGatherContext(RecordContext::ALL);
    if (context == nullptr) {
      Lock guard(block->mutex_);
      context = block->context_when_allocated_;
    }
    trace(TraceEntry::FREE_REQUESTED, block->ptr_, block->size_, std::move(context));
  }
  block->handed_out.store(false, std::memory_order_relaxed);
  // Who frees a block is the last of its users: what they recorded happened before.
  if (block->on_streams.load(std::memory_order_relaxed)) {
    free_with_events(block);
  } else {
    end_trace(block);
    if (C10_UNLIKELY(!kept_.keep(block))) {
      give_back(block);
    }
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
  kept_.count_freed(block);
  engine_defer(block->grant);
  // Destructors of tensors lead here, so nothing may be thrown. A block whose events cannot be
  // recorded keeps its count and is never used again: lost memory is better than a wrong reuse.
  try {
    for (const CUDAStream stream : streams) {
      // What a capture records runs at each replay, and no event tells when the last one is over.
      if (capture_underway() && stream_is_capturing(stream)) {
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

void BuddyAllocator::end_trace(Block* block) {
  // Also where recording has ended since: the context is not the next user's.
  if (C10_UNLIKELY(isHistoryEnabled() || block->traced.load(std::memory_order_relaxed))) {
    std::shared_ptr<c10::GatheredContext> context;
    {
      Lock guard(block->mutex_);
      context.swap(block->context_when_allocated_);
    }
    block->traced.store(false, std::memory_order_relaxed);
    // Writes nothing while nothing is recorded.
    trace(TraceEntry::FREE_COMPLETED, block->ptr_, block->size_, std::move(context));
  }
}

void BuddyAllocator::give_back(Block* block) {
  const Grant grant = block->grant;
  // Out of the table first: another thread may get the same address as soon as the engine has it.
  table_.put(block);
  engine_release(grant);
}

void BuddyAllocator::give_back_kept() {
  if (in_forked_child()) {
    return;
  }
  Kept kept;
  Block* blocks = kept_.sweep(kept);
  engine_settle(kept);
  while (blocks != nullptr) {
    give_back(std::exchange(blocks, blocks->next_kept));
  }
}

void BuddyAllocator::reap() {
  if (pending_.empty() || in_forked_child()) {
    return;
  }
  pending_.reap(
      [this](PooledEvent& event) { return CudaBackend::query_event(event); },
      [this](Block* block) {
        bool last = false;
        {
          Lock guard(block->mutex_);
          last = --block->event_count_ == 0;
        }
        if (last) {
          end_trace(block);
          // From pending to live for the engine: before another thread can have it.
          engine_keep(block->grant);
          if (!kept_.keep_counted(block)) {
            give_back(block);
          }
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
