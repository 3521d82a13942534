// What device_trace.h declares; nothing before torch 2.11.
#include "../upstream.h"

#if PINBUDDY_TORCH_FROM(11)

#include "device_trace.h"

#include <algorithm>

#include "../lock.h"
#include "../recording.h"

namespace pinbuddy {
namespace {

using recording::Kind;

// What an entry holds (src/record/source.rs). Streams beyond are one.
constexpr unsigned kStreamShift = 41;
constexpr unsigned kDeviceShift = 53;
constexpr unsigned kPlanlessShift = 59;
constexpr std::uint64_t kMostBytes = (std::uint64_t{1} << kStreamShift) - 1;
constexpr std::uint64_t kMostStreams = (std::uint64_t{1} << (kDeviceShift - kStreamShift)) - 1;

} // namespace

std::uint64_t DeviceTrace::number_of(const void* stream) {
  if (C10_UNLIKELY(stream != last_stream_)) {
    last_number_ = find_number_of(stream);
    last_stream_ = stream;
  }
  return last_number_;
}

std::uint64_t DeviceTrace::find_number_of(const void* stream) {
  const auto found = streams_.find(stream);
  if (found != streams_.end()) {
    return found->second;
  }
  const std::uint64_t number = std::min<std::uint64_t>(streams_.size(), kMostStreams);
  if (number < kMostStreams) {
    streams_.emplace(stream, number);
  }
  return number;
}

void DeviceTrace::request(std::size_t address, std::size_t bytes, const void* stream, bool planless) {
  const std::uint64_t now = recording::session.load(std::memory_order_relaxed);
  if (now == 0) {
    return;
  }
  Lock guard(mutex_);
  // In their order, whether or not the entry finds room.
  const std::uint64_t number = number_of(stream);
  const std::uint64_t value = std::min<std::uint64_t>(bytes, kMostBytes) | number << kStreamShift |
      device_ << kDeviceShift | std::uint64_t{planless} << kPlanlessShift;
  const std::uint64_t what = recording::entry(Kind::kDeviceRequest, value);
  Ring* ring = Rings::own();
  if (C10_UNLIKELY(ring == nullptr)) {
    Rings::lose(what);
    return;
  }
  const std::uint64_t allocation = now << recording::kSessionShift | ring->number();
  if (C10_LIKELY(ring->push(allocation, what, Ring::kReserve))) {
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
    // One `kDeviceDone` follows.
    recording::push(found->second.allocation, Kind::kDeviceFree, 1);
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
  recording::push(block.allocation, block.freed ? Kind::kDeviceDone : Kind::kDeviceFree, 0);
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
  recording::push(found->second.allocation, Kind::kDeviceUse, number_of(stream));
}

void DeviceTrace::segment(std::size_t bytes, bool gone) {
  const std::uint64_t now = recording::session.load(std::memory_order_relaxed);
  const std::uint64_t what = std::min<std::uint64_t>(bytes, kMostBytes) | device_ << kDeviceShift;
  recording::push(now << recording::kSessionShift, gone ? Kind::kSegmentFree : Kind::kSegmentAlloc, what);
}

} // namespace pinbuddy

#endif
