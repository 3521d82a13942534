#include "guard.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "lock.h"

namespace pinbuddy {
namespace {

constexpr unsigned char kFreed = 0xDB;
constexpr unsigned char kBehind = 0xA5;

pid_t this_thread() {
  return static_cast<pid_t>(::syscall(SYS_gettid));
}

// The first byte of a range that is not `expected`, and how many there are; the end where there is none.
struct Change {
  std::uintptr_t first;
  std::size_t count;
};

Change change_in(std::uintptr_t begin, std::uintptr_t end, unsigned char expected) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(begin);
  const std::size_t length = end - begin;
  // Compared with itself one byte on: memcmp is as fast as memory.
  if (length == 0 || (bytes[0] == expected && std::memcmp(bytes, bytes + 1, length - 1) == 0)) {
    return {end, 0};
  }
  const auto* first = std::find_if(bytes, bytes + length, [&](auto it) { return it != expected; });
  const auto count = std::count_if(first, bytes + length, [&](auto it) { return it != expected; });
  return {reinterpret_cast<std::uintptr_t>(first), static_cast<std::size_t>(count)};
}

// `see` is the hint at where the message is explained.
template <typename... Parts>
[[noreturn]] void report(const char* see, const char* format, Parts... parts) {
  std::fprintf(stderr, "pinbuddy: BUDDY_GUARD: ");
  std::fprintf(stderr, format, parts...);
  std::fprintf(stderr, "; the process ends, since its data cannot be trusted (see: %s)\n", see);
  std::fflush(stderr);
  std::abort();
}

void fill(std::uintptr_t begin, std::uintptr_t end, unsigned char value) {
  std::memset(reinterpret_cast<void*>(begin), value, end - begin);
}

} // namespace

Guard* Guard::make() {
  return engine_guarded() ? new Guard() : nullptr;
}

void Guard::hand_out(const Block& block, std::size_t size) {
  const std::uintptr_t begin = block.grant.address;
  check(take(begin, begin + block.grant.bytes));
  fill(begin + size, begin + block.grant.bytes, kBehind);
  Owner owner{size, this_thread(), {}, 0};
  pthread_getname_np(pthread_self(), owner.name.data(), owner.name.size());
  Lock guard(mutex_);
  live_[begin] = owner;
}

void Guard::freed(const Block& block) {
  const std::uintptr_t begin = block.grant.address;
  const pid_t thread = this_thread();
  Owner owner{};
  bool twice = false;
  {
    Lock guard(mutex_);
    const auto found = live_.find(begin);
    if (found != live_.end()) {
      owner = found->second;
      twice = owner.freed_by != 0;
      found->second.freed_by = thread;
    } else {
      const auto before = freed_.find(begin);
      twice = true;
      owner = before == freed_.end() ? owner : before->second.owner;
    }
  }
  if (twice) {
    report(
        "pinbuddy explain 'was freed twice'",
        "a block at %#zx was freed twice (bytes: %zu), the second time by thread %d; the first time by thread %d",
        begin, owner.size, thread, owner.freed_by);
  }
  const auto change = change_in(begin + owner.size, begin + block.grant.bytes, kBehind);
  if (change.count != 0) {
    report(
        "pinbuddy explain 'were written past the end of a block'",
        "%zu bytes were written past the end of a block at %#zx (bytes: %zu), the first %zu bytes behind its end; "
        "thread %d (%s) asked for it",
        change.count, begin, owner.size, change.first - begin - owner.size, owner.thread, owner.name.data());
  }
}

void Guard::idle(const Block& block) {
  const std::uintptr_t begin = block.grant.address;
  const std::uintptr_t end = begin + block.grant.bytes;
  fill(begin, end, kFreed);
  Lock guard(mutex_);
  const auto found = live_.find(begin);
  if (found != live_.end()) {
    freed_[begin] = {end, found->second, begin};
    live_.erase(found);
  }
}

void Guard::goes(const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  check(take(begin, begin + bytes));
}

void Guard::check_all() {
  // Under the lock, so that another thread that still asks for memory gets none that is being looked at.
  Lock guard(mutex_);
  check({freed_.begin(), freed_.end()});
}

Guard::Pieces Guard::take(std::uintptr_t begin, std::uintptr_t end) {
  Pieces pieces;
  Lock guard(mutex_);
  auto next = freed_.lower_bound(begin);
  if (next != freed_.begin() && std::prev(next)->second.end > begin) {
    --next;
  }
  while (next != freed_.end() && next->first < end) {
    const std::uintptr_t from = next->first;
    const Freed whole = next->second;
    next = freed_.erase(next);
    if (from < begin) {
      freed_[from] = {begin, whole.owner, whole.block};
    }
    if (whole.end > end) {
      next = freed_.emplace(end, Freed{whole.end, whole.owner, whole.block}).first;
    }
    pieces.emplace_back(
        std::max(from, begin), Freed{std::min(whole.end, end), whole.owner, whole.block});
  }
  return pieces;
}

void Guard::check(const Pieces& pieces) {
  for (const auto& [begin, piece] : pieces) {
    const auto change = change_in(begin, piece.end, kFreed);
    if (change.count != 0) {
      const Owner& owner = piece.owner;
      report(
          "pinbuddy explain 'were written after it was freed'",
          "%zu bytes of a block at %#zx (bytes: %zu) were written after it was freed, the first at offset %zu; thread "
          "%d (%s) asked for it and thread %d freed it. Something uses it still: an address that outlived its tensor, "
          "or a copy on a stream that record_stream was not told of",
          change.count, piece.block, owner.size, change.first - piece.block, owner.thread, owner.name.data(),
          owner.freed_by);
    }
  }
}

} // namespace pinbuddy
