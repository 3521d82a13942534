// What cxx makes of cxx-bridge/src/lib.rs; `engine.cpp` stands in for Rust.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "host_allocator.h"
#include "rust/cxx.h"

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

// The queues of freed blocks, in the order of streams' names.
struct PendingQueues {
  void push(std::uint64_t stream, std::size_t event, std::size_t block) const noexcept;
  std::size_t streams() const noexcept;
  bool begin(std::size_t& left, std::uint64_t& stream, std::size_t& event, std::size_t& block) const noexcept;
  void end(std::uint64_t stream, bool over) const noexcept;
};

bool engine_enabled() noexcept;
bool engine_guarded() noexcept;
const Guard& engine_guard() noexcept;
const PendingQueues& engine_pending() noexcept;
void engine_report_settings() noexcept;
bool device_planned() noexcept;
bool device_records() noexcept;
bool device_traces() noexcept;
void device_absent(rust::String why) noexcept;
std::size_t engine_threshold() noexcept;
std::size_t engine_segment_bytes() noexcept;
std::size_t engine_homes() noexcept;
std::uint32_t engine_home_of(std::int32_t device) noexcept;
bool engine_request(std::size_t bytes, Grant& grant) noexcept;
bool engine_request_beside(
    std::size_t bytes, std::size_t cached, std::size_t alike, Grant& grant) noexcept;
void engine_reused(std::size_t blocks, std::size_t bytes) noexcept;
std::size_t engine_slots() noexcept;
std::uint32_t engine_size_classes() noexcept;
bool engine_is_planned(const Grant& grant) noexcept;
bool engine_request_planned(std::size_t bytes, Grant& grant) noexcept;
bool engine_slot_at(std::size_t address, std::uint32_t& slot) noexcept;
void engine_cache(const Grant& grant) noexcept;
void engine_defer(const Grant& grant) noexcept;
void engine_release(const Grant& grant) noexcept;
void engine_empty_cache() noexcept;
void engine_close() noexcept;
bool engine_enter_child() noexcept;
void engine_made_child() noexcept;
bool engine_give_way(std::size_t bytes) noexcept;
Counters engine_counters() noexcept;
void engine_reset_peaks() noexcept;
void engine_reset_accumulated() noexcept;
rust::Vec<Part> engine_parts() noexcept;
rust::String engine_state_line() noexcept;
rust::String engine_refused_line(std::size_t bytes) noexcept;
void engine_arm_record() noexcept;
bool record_is_on() noexcept;
bool record_request(std::size_t bytes, bool is_private, std::uint64_t& allocation) noexcept;
void record_free(std::uint64_t allocation, std::size_t pending) noexcept;
void record_done(std::uint64_t allocation) noexcept;
void record_use(std::uint64_t allocation, std::uint64_t stream) noexcept;
void record_clear() noexcept;
void wait_begins(bool in_request) noexcept;
void wait_ends() noexcept;
void engine_record_begin() noexcept;
void engine_record_close() noexcept;

} // namespace pinbuddy
