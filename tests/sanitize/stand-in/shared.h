// What cxx makes of the types that the bridge declares (cxx-bridge/src/lib.rs), as far as the C++ side names them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pinbuddy {

struct Grant {
  std::size_t address;
  std::size_t bytes;
  std::uint32_t segment;
  std::size_t offset;
};

struct Part {
  std::size_t address;
  std::size_t bytes;
  bool live;
  bool pending;
};

struct Caches {
  std::uint64_t bytes;
  std::uint64_t served;
};

struct Counter {
  std::int64_t current;
  std::int64_t peak;
  std::int64_t allocated;
  std::int64_t freed;
};

struct Counters {
  Counter segments;
  Counter pinned_bytes;
  Counter active_blocks;
  Counter active_bytes;
};

// Writes what the real one writes, so that sanitizers see who has a block. Rust's tests are of what it finds.
struct Guard {
  static constexpr std::size_t kTail = 64;

  std::size_t with_tail(std::size_t size) const noexcept {
    return size + kTail < kTail ? 0 : size + kTail;
  }
  void hand_out(std::size_t address, std::size_t bytes, std::size_t size) const noexcept {
    std::memset(reinterpret_cast<char*>(address) + size, 0, bytes - size);
  }
  void freed(std::size_t, std::size_t) const noexcept {}
  void idle(std::size_t address, std::size_t bytes) const noexcept {
    std::memset(reinterpret_cast<char*>(address), 0, bytes);
  }
  void unpins(std::size_t, std::size_t) const noexcept {}
  void check_all() const noexcept {}
};

} // namespace pinbuddy
