// Requests: which path each takes, and what it asks the engine.
#include "buddy_allocator.h"

#include <c10/util/Exception.h>

#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "child.h"
#include "driver_wait.h"
#include "lock.h"
#include "settings.h"

#ifdef PINBUDDY_DEBUG
// The simulated runtime's, where that is in front: reports memory that a copy still has in flight.
extern "C" [[gnu::weak]] void pinbuddy_sim_handed_out(const void* address, std::size_t bytes);
#endif

namespace pinbuddy {
namespace {

// What a request gets; with assertions, once it was looked at.
std::pair<void*, void*> handed_out(std::pair<void*, void*> made, [[maybe_unused]] std::size_t size) {
#ifdef PINBUDDY_DEBUG
  if (pinbuddy_sim_handed_out != nullptr) {
    pinbuddy_sim_handed_out(made.first, size);
  }
#endif
  return made;
}

// A request stops querying streams after so many busy ones, as stock does.
constexpr std::size_t kMostBusy = 1;

// No request is as large.
constexpr std::size_t kNoRequest = std::numeric_limits<std::size_t>::max();

} // namespace

BuddyAllocator::BuddyAllocator()
    : threshold_(engine_guarded() ? kNoRequest : engine_threshold()),
      classes_(engine_size_classes()),
      guard_(engine_guarded() ? &engine_guard() : nullptr),
      cache_(homes_.most()),
      planned_(table_),
      refusals_(engine_segment_bytes()) {}

std::pair<void*, void*> BuddyAllocator::allocate(std::size_t size) {
  if (C10_UNLIKELY(recording_.load(std::memory_order_relaxed))) {
    return handed_out(allocate_recorded(size), size);
  }
  return handed_out(serve(size), size);
}

[[gnu::always_inline]] inline std::pair<void*, void*> BuddyAllocator::serve(std::size_t size) {
  if (size < threshold_ || size == 0) {
    if (C10_UNLIKELY(guard_ != nullptr) && size != 0 && !is_child() && serves_default_pool()) {
      return allocate_guarded(size);
    }
    if (C10_UNLIKELY(!pending_.empty())) {
      // As upstream does at the next request, whatever its size.
      reap_beside(size);
    }
    return CudaBackend::allocate(size);
  }
  if (is_child() || !serves_default_pool()) {
    return CudaBackend::allocate(size);
  }
  if (C10_UNLIKELY(may_have_reserved())) {
    // What the program has asked PyTorch to reserve is pinned already.
    if (const auto made = serve_reserved(size); made.second != nullptr) {
      return made;
    }
  }
  const bool tracing = isHistoryEnabled();
  // Before any lock is taken: it may need Python's lock.
  auto context = tracing ? maybeGatherContext(RecordContext::STATE) : nullptr;
  reap_until(kMostBusy, context);
  reap_lists();
  // The engine does not serve blocks that PyTorch is told to unpin as soon as they are freed.
  Block* block = C10_LIKELY(size <= settings::pinned_max_cached_size()) ? take(size) : nullptr;
  if (block == nullptr) {
    return CudaBackend::allocate(size);
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

[[gnu::noinline]] std::pair<void*, void*> BuddyAllocator::serve_reserved(std::size_t size) {
  if (!may_be_reserved(size)) {
    return {nullptr, nullptr};
  }
  if (!pending_.empty()) {
    reap_beside(size);
  }
  return allocate_reserved(size);
}

[[gnu::noinline]] std::pair<void*, void*> BuddyAllocator::allocate_recorded(std::size_t size) {
  // First, so that the recording has begun when the first request waits for the driver.
  if (C10_UNLIKELY(!recording_begun_.load(std::memory_order_relaxed)) && !recording_begun_.exchange(true)) {
    engine_record_begin();
  }
  const auto made = serve(size);
  if (made.second != nullptr) {
    auto* block = static_cast<Block*>(made.second);
    const bool is_private = !serves_default_pool() || size > settings::pinned_max_cached_size() ||
        (!block->engine_owned && is_reserved(*block));
    std::uint64_t allocation = 0;
    if (C10_LIKELY(record_request(size, is_private, allocation))) {
      block->allocation = allocation;
      block->recorded = true;
    }
  }
  return made;
}

void BuddyAllocator::record(bool on) {
  recording_.store(on, std::memory_order_relaxed);
}

void BuddyAllocator::reap_beside(std::size_t size) {
  if (size != 0 && !is_child() && serves_default_pool()) {
    reap_until(
        kMostBusy, isHistoryEnabled() ? maybeGatherContext(RecordContext::STATE) : nullptr);
  }
}

Block* BuddyAllocator::take(std::size_t size) {
  if (C10_UNLIKELY(planned_.any())) {
    if (Block* block = planned_.take(size); C10_LIKELY(block != nullptr)) {
      refusals_.granted(*block);
      return block;
    }
  }
  // A size that overflows here is not cached.
  const std::size_t bytes = classes_.round(size);
  bool again = false;
  const std::uint32_t home = C10_UNLIKELY(homes_.are_several()) ? homes_.here() : 0;
  Block* block = cache_.take_or_note(bytes, home, again);
  if (C10_UNLIKELY(block == nullptr)) {
    return take_from_engine(C10_LIKELY(bytes >= size) ? bytes : size, home, again);
  }
  refusals_.taken(*block);
  return block;
}

Block* BuddyAllocator::take_from_engine(std::size_t size, std::uint32_t home, bool again) {
  if (refusals_.stand(size)) {
    // Upstream may have to pin: first release blocks whose events are complete.
    reap();
    if (refusals_.stand(size)) {
      return nullptr;
    }
  }
  if (!again && cache_.is_worth_a_flush()) {
    flush_cached();
  }
  // First beside cached blocks, in a segment that is in use: otherwise the sizes of a mix would flush each
  // other.
  Grant grant{};
  grant.segment = home;
  const std::size_t cached = cache_.bytes_at(home);
  const std::size_t alike = cached == 0 ? 0 : cache_.alike(size, home);
  if (!engine_request_beside(size, cached, alike, grant) && !request_after_flush(size, grant)) {
    if (!engine_enabled()) {
      // Retired: upstream serves from now on.
      cache_.end();
    }
    return nullptr;
  }
  Block* block = table_.take(grant);
  // Also one of another home, where nothing more may be pinned: else each request of its size would flush all caches. What a plan
  // leaves idle is not kept: a slot may be waiting for it.
  cache_.assign(block, home, again && !engine_is_planned(grant));
  refusals_.granted(*block);
  return block;
}

bool BuddyAllocator::request_after_flush(std::size_t size, Grant& grant) {
  // The engine chooses among all idle memory, as if nothing had been cached; blocks that are freed meanwhile
  // go to it, too.
  const BlockCache::Paused paused(cache_);
  if (flush_any_cached() && engine_request_beside(size, 0, 0, grant)) {
    return true;
  }
  // Before memory is pinned or an idle segment cut, blocks whose events are complete are released.
  reap();
  Refusals::Asking asking(refusals_);
  if (engine_request(size, grant)) {
    return true;
  }
  asking.note(size);
  return false;
}

void BuddyAllocator::allocate_host_memory(std::size_t size, void** ptr) {
  if (C10_UNLIKELY(only_reserved)) {
    // Pins nothing, so that nobody waits, or goes on without it.
    CudaBackend::allocate_host_memory(size, ptr);
    return;
  }
  const DriverWait wait(/*in_request=*/true);
  for (bool first = true;; first = false) {
    try {
      CudaBackend::allocate_host_memory(size, ptr);
      return;
    } catch (c10::Error& error) {
      if (is_child()) {
        throw;
      }
      flush_cached();
      if (!first || !engine_give_way(size)) {
        // CUDA's words are the same where a GPU is full.
        if (std::string_view(error.what_without_backtrace()).find("out of memory") != std::string_view::npos) {
          error.add_context(std::string(engine_refused_line(size)));
        }
        error.add_context(std::string(engine_state_line()));
        throw;
      }
    }
  }
}

void BuddyAllocator::empty_cache() {
  CudaBackend::empty_cache();
  reap();
  // After the blocks that are free by now: a plan asks what lives while the cache is emptied.
  record_clear();
  flush_cached();
  cache_.forget();
  refusals_.forget();
  engine_empty_cache();
}

std::pair<void*, void*> BuddyAllocator::allocate_guarded(std::size_t size) {
  const bool tracing = isHistoryEnabled();
  auto context = tracing ? maybeGatherContext(RecordContext::STATE) : nullptr;
  reap_until(kMostBusy, context);
  const std::size_t with_tail = guard_->with_tail(size);
  const bool may_serve = size <= settings::pinned_max_cached_size() && with_tail != 0;
  Block* block = may_serve ? take(with_tail) : nullptr;
  if (block == nullptr) {
    return CudaBackend::allocate(size);
  }
  guard_->hand_out(block->grant.address, block->grant.bytes, size);
  // It is freed the long way, where the guard looks at it.
  block->on_streams.store(true, std::memory_order_relaxed);
  block->traced.store(true, std::memory_order_relaxed);
  if (tracing) {
    {
      Lock guard(block->mutex_);
      block->context_when_allocated_ = context;
    }
    trace(TraceEntry::ALLOC, block->ptr_, block->size_, std::move(context));
  }
  block->handed_out.store(true, std::memory_order_release);
  return {reinterpret_cast<void*>(block->grant.address), block};
}

void BuddyAllocator::check_guarded() {
  if (guard_ != nullptr && !is_child()) {
    guard_->check_all();
  }
}

void BuddyAllocator::before_fork() {
  CudaBackend::before_fork();
  cache_.before_fork();
}

void BuddyAllocator::after_fork(bool in_child) {
  cache_.after_fork(in_child);
  CudaBackend::after_fork(in_child);
}

} // namespace pinbuddy
