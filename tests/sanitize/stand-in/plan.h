// A stand-in for a plan: a region with a few slots of one size, which is pinned by the first request for it and unpinned
// by a clear once nobody has a slot.
//
// As the real one it calls C++ only where it holds no lock, and ends the program where a slot comes back that nobody has.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <mutex>

#include "host_allocator.h"
#include "shared.h"

namespace pinbuddy {

class Plan {
 public:
  static constexpr std::size_t kSlots = 3;
  static constexpr std::size_t kBytes = std::size_t{3} << 19;
  // In place of a segment's number.
  static constexpr std::uint32_t kNumber = 0xffffffff;

  bool request(std::size_t bytes, Grant& grant) {
    if (bytes != kBytes) {
      return false;
    }
    std::unique_lock guard(mutex_);
    if (address_ == 0) {
      if (on_its_way_) {
        return false;
      }
      on_its_way_ = true;
      guard.unlock();
      const std::size_t address = pin_region(kSlots * kBytes, 0);
      guard.lock();
      on_its_way_ = false;
      address_ = address;
    }
    bool* slot = std::find(std::begin(taken_), std::end(taken_), false);
    if (slot == std::end(taken_)) {
      return false;
    }
    *slot = true;
    const auto number = static_cast<std::size_t>(slot - taken_);
    grant = {address_ + number * kBytes, kBytes, kNumber, number};
    return true;
  }

  bool slot_at(std::size_t address, std::uint32_t& slot) {
    std::lock_guard guard(mutex_);
    for (std::uint32_t number = 0; number < kSlots; ++number) {
      if (taken_[number] && address == address_ + number * kBytes) {
        slot = number;
        return true;
      }
    }
    return false;
  }

  void release(const Grant& grant) {
    std::lock_guard guard(mutex_);
    if (grant.address != address_ + grant.offset * kBytes || !taken_[grant.offset]) {
      std::fprintf(stderr, "released twice, or never granted: slot %zu\n", grant.offset);
      std::abort();
    }
    taken_[grant.offset] = false;
  }

  void clear() {
    std::unique_lock guard(mutex_);
    if (address_ == 0 || std::find(std::begin(taken_), std::end(taken_), true) != std::end(taken_)) {
      return;
    }
    const std::size_t address = address_;
    address_ = 0;
    guard.unlock();
    unpin_region(address, kSlots * kBytes);
  }

 private:
  std::mutex mutex_;
  // 0: it is not pinned.
  std::size_t address_ = 0;
  bool on_its_way_ = false;
  bool taken_[kSlots] = {};
};

inline Plan& plan() {
  static auto* plan = new Plan;
  return *plan;
}

} // namespace pinbuddy
