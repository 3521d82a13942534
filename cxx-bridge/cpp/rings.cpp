#include "rings.h"

#include <algorithm>
#include <mutex>
#include <new>

#include "thread_number.h"

namespace pinbuddy {
namespace {

// A thread that found no ring looks again after so many entries.
constexpr unsigned kPatience = 1024;

// Guards the making of rings: once for each of them.
std::mutex making;

// What was lost since this was told, which it is now.
Lost news_of(const Losses& losses, Lost& told) {
  const Lost all = losses.total();
  const Lost news{all.pinned - told.pinned, all.device - told.device};
  told = all;
  return news;
}

} // namespace

Drained Ring::drain(rust::Slice<Entry> into) {
  // Before what it has published: nothing comes after this.
  std::uint32_t state = state_.load(std::memory_order_acquire);
  const bool left = (state & kStates) == kLeft;
  const std::uint64_t end = published_.load(std::memory_order_acquire);
  std::uint64_t at = taken_.load(std::memory_order_relaxed);
  const std::size_t count = std::min<std::size_t>(end - at, into.size());
  // An owner that has published nothing since is not looked at: it may be a new one.
  const std::uint32_t thread = count != 0 ? thread_.load(std::memory_order_relaxed) : 0;
  for (std::size_t i = 0; i < count; ++i, ++at) {
    const Raw& raw = entries_[at % kEntries];
    into[i] = Entry{raw.ticks, raw.allocation, raw.what};
  }
  taken_.store(at, std::memory_order_release);
  const Lost news = news_of(lost_, lost_told_);
  // Not with its last entries, which have the owner's number.
  if (left && count == 0) {
    // Unless a thread goes on with it.
    state_.compare_exchange_strong(
        state, state - kLeft + kVacant, std::memory_order_release, std::memory_order_relaxed);
  }
  return Drained{count, thread, news};
}

bool Ring::claim(std::uint32_t thread) {
  std::uint32_t state = state_.load(std::memory_order_acquire);
  // Threads one after the other have one number, and no more to wait for than one thread: the consumer need not have come by.
  const bool goes_on =
      (state & kStates) == kLeft && thread_.load(std::memory_order_relaxed) == thread;
  if (!goes_on && (state & kStates) != kVacant) {
    return false;
  }
  const std::uint32_t next = (state & ~kStates) + kStates + 1 + kOwned;
  if (!state_.compare_exchange_strong(state, next, std::memory_order_acquire)) {
    return false;
  }
  thread_.store(thread, std::memory_order_relaxed);
  waited_ = 0;
  return true;
}

Lost Rings::take_lost() {
  return news_of(lost_, lost_told_);
}

// Leaves the thread's ring when the thread ends.
struct Rings::Owner {
  bool over = false;

  ~Owner() {
    over = true;
    if (own_ != nullptr) {
      own_->leave();
      own_ = nullptr;
    }
  }
};

Ring* Rings::claim() {
  static constinit thread_local unsigned to_wait = 0;
  // First, so that it goes last: whoever has the number next has it for good.
  ThreadNumber::own();
  static thread_local Owner owner;
  if (owner.over) {
    // Its destructor has run: what other destructors of this thread do is lost.
    return nullptr;
  }
  if (to_wait != 0) {
    --to_wait;
    return nullptr;
  }
  own_ = claim_any();
  if (own_ == nullptr) {
    to_wait = kPatience;
  }
  return own_;
}

Ring* Rings::claim_any() {
  const std::uint32_t thread = ThreadNumber::own();
  const std::size_t there = count();
  for (std::size_t index = 0; index < there; ++index) {
    Ring* ring = rings_[index].load(std::memory_order_acquire);
    if (ring->claim(thread)) {
      return ring;
    }
  }
  std::lock_guard<std::mutex> guard(making);
  const std::size_t index = count_.load(std::memory_order_relaxed);
  if (index == kMost) {
    return nullptr;
  }
  // Leaked: a thread may be in it until the very end of the process.
  auto* ring = new (std::nothrow) Ring(index, thread);
  if (ring != nullptr) {
    rings_[index].store(ring, std::memory_order_release);
    count_.store(index + 1, std::memory_order_release);
  }
  return ring;
}

} // namespace pinbuddy
