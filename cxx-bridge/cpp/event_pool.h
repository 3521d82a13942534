// Pooled CUDA events: creating one is a driver call that serialises threads, so each is reused on its
// device.
//
// Invariants: an event that is handed out belongs to one holder; CUDA is never called under the pool's lock.
// Pools and their events are leaked at exit, when CUDA may be gone.
#pragma once

#include <c10/core/Device.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace pinbuddy {

// An event from its device's pool, to which it returns when destroyed.
class PooledEvent {
 public:
  // Takes an event of the stream's device and records it there. Throws c10::Error.
  static PooledEvent record(c10::cuda::CUDAStream stream);

  // Whether the event is complete. Throws c10::Error on any CUDA failure.
  bool completed() const;

  // Returns once it is. Throws as well.
  void wait() const;

  // An event as a number, and back: who has the number holds the event meanwhile.
  std::size_t release() noexcept {
    return reinterpret_cast<std::size_t>(event_.release());
  }
  PooledEvent(std::size_t released, c10::DeviceIndex device) noexcept
      : PooledEvent(reinterpret_cast<cudaEvent_t>(released), device) {}

  // Marks for the holder: whether it counts the event, and the recorded allocation that waits for it, or 0.
  bool counted = false;
  std::uint64_t allocation = 0;

 private:
  // The way back to the device's pool.
  struct Return {
    c10::DeviceIndex device;
    void operator()(cudaEvent_t event) const;
  };

  PooledEvent(cudaEvent_t event, c10::DeviceIndex device) noexcept : event_(event, {device}) {}

  std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Return> event_;
};

} // namespace pinbuddy
