// The streams of all devices that have asked for planned memory, and what may be asked of them at all (reach.h).
//
// Knows neither captures nor reports.
#pragma once

#include <c10/core/Device.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "pinbuddy-bridge/src/lib.rs.h"
#include "reach.h"
#include "streams.h"

namespace pinbuddy {

// As many as an index of c10 can name: none is out of bounds.
constexpr int kDevices = 128;

class AllStreams {
 public:
  explicit AllStreams(bool planned) : lengths_(planned, device_threshold(), device_longest()) {}

  // There are so many devices. Before that there are none.
  void begin(int devices) {
    devices_.store(std::min(devices, kDevices), std::memory_order_release);
  }

  int devices() const {
    return devices_.load(std::memory_order_acquire);
  }

  Streams& operator[](c10::DeviceIndex device) {
    return all_[static_cast<std::uint8_t>(device)];
  }

  // Whether a plan may have a place for so many bytes.
  bool may_plan(std::size_t bytes) const {
    return lengths_.may_be_planned(bytes);
  }

  // A stream has asked: once each that has a plan has its number, requests that are too long for all are turned away.
  void count() {
    if (C10_UNLIKELY(!lengths_.is_limited()) && are_known()) {
      lengths_.limit();
    }
  }

  Span& span() {
    return span_;
  }

  // Whose region holds the address; null if none does.
  StreamMemory* owner_of(const void* address) {
    if (C10_LIKELY(!span_.holds(address))) {
      return nullptr;
    }
    for (int device = 0; device < devices(); ++device) {
      if (StreamMemory* owner = all_[device].owner(address)) {
        return owner;
      }
    }
    return nullptr;
  }

  template <class Act>
  void each(Act act) {
    for (int device = 0; device < devices(); ++device) {
      all_[device].each(act);
    }
  }

 private:
  bool are_known() {
    for (int device = 0; device < devices(); ++device) {
      if (all_[device].count() < device_streams(static_cast<c10::DeviceIndex>(device))) {
        return false;
      }
    }
    return devices() > 0;
  }

  Lengths lengths_;
  Span span_;
  std::atomic<int> devices_{0};
  std::array<Streams, kDevices> all_;
};

} // namespace pinbuddy
