// What device_trace.h declares; nothing before torch 2.11.
#include "../upstream.h"

#if PINBUDDY_TORCH_FROM(11)

#include "device_trace.h"

#include "../lock.h"
#include "pinbuddy-bridge/src/lib.rs.h"

namespace pinbuddy {

std::uint64_t DeviceTrace::number_of(const void* stream) {
  if (C10_UNLIKELY(stream != last_stream_)) {
    last_number_ = streams_.emplace(stream, streams_.size()).first->second;
    last_stream_ = stream;
  }
  return last_number_;
}

void DeviceTrace::request(std::size_t address, std::size_t bytes, const void* stream, bool planless) {
  if (!record_is_on()) {
    return;
  }
  Lock guard(mutex_);
  // In their order, whether or not the entry finds room.
  const std::uint64_t number = number_of(stream);
  std::uint64_t allocation = 0;
  if (C10_LIKELY(record_device_request(device_, number, bytes, planless, allocation))) {
    live_[address] = Live{allocation};
  }
}

void DeviceTrace::free(std::size_t address) {
  if (C10_LIKELY(used_.load(std::memory_order_relaxed) == 0)) {
    return;
  }
  Lock guard(mutex_);
  const auto found = live_.find(address);
  if (found != live_.end() && found->second.used) {
    found->second.freed = true;
    // One that it is done follows.
    record_device_free(found->second.allocation, 1);
  }
}

void DeviceTrace::done(std::size_t address) {
  Lock guard(mutex_);
  const auto found = live_.find(address);
  if (found == live_.end()) {
    return;
  }
  const Live block = found->second;
  live_.erase(found);
  if (C10_UNLIKELY(block.used)) {
    used_.fetch_sub(1, std::memory_order_relaxed);
  }
  if (block.freed) {
    record_device_done(block.allocation);
  } else {
    record_device_free(block.allocation, 0);
  }
}

void DeviceTrace::use(std::size_t address, const void* stream) {
  Lock guard(mutex_);
  const auto found = live_.find(address);
  if (found == live_.end()) {
    return;
  }
  if (!found->second.used) {
    found->second.used = true;
    used_.fetch_add(1, std::memory_order_relaxed);
  }
  record_device_use(found->second.allocation, number_of(stream));
}

void DeviceTrace::segment(std::size_t bytes, bool gone) {
  record_device_segment(device_, bytes, gone);
}

} // namespace pinbuddy

#endif
