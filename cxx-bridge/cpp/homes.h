// Homes of memory: which one a request is of, by its thread's current device.
//
// Most processes have one, and never ask. Else the device is asked as upstream asks it, without a call of the driver,
// and its home is remembered: it stays the same.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "host_allocator.h"
#include "pinbuddy-bridge/src/lib.rs.h"

namespace pinbuddy {

class Homes {
 public:
  // How many there can be.
  std::size_t most() const {
    return most_;
  }
  bool are_several() const {
    return most_ > 1;
  }

  // That of the current device.
  [[gnu::noinline]] std::uint32_t here() {
    const std::int32_t device = current_device();
    if (device < 0 || static_cast<std::size_t>(device) >= known_.size()) {
      return engine_home_of(device);
    }
    auto& known = known_[static_cast<std::size_t>(device)];
    std::uint32_t home = known.load(std::memory_order_relaxed);
    if (home == 0) {
      home = engine_home_of(device) + 1;
      known.store(home, std::memory_order_relaxed);
    }
    return home - 1;
  }

 private:
  const std::size_t most_ = engine_homes();
  // By device: one more than its home; 0 is not known.
  std::array<std::atomic<std::uint32_t>, 64> known_{};
};

} // namespace pinbuddy
