// Pooled CUDA events: creating one is a driver call that threads serialise on, so each is used
// again and again on the device that it was made for.
//
// Invariants: an event that is handed out belongs to one holder; nothing calls CUDA under the
// pool's lock. Pools and their events are leaked at exit, when CUDA may be gone already.
#pragma once

#include <c10/core/Device.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <mutex>
#include <vector>

namespace pinbuddy {

// An event on loan from its device's pool; goes back when destroyed.
class PooledEvent {
 public:
  // Takes an event of the stream's device and records it there. Throws c10::Error.
  static PooledEvent record(c10::cuda::CUDAStream stream);

  PooledEvent(PooledEvent&& other) noexcept;
  PooledEvent& operator=(PooledEvent&& other) noexcept;
  PooledEvent(const PooledEvent&) = delete;
  PooledEvent& operator=(const PooledEvent&) = delete;
  ~PooledEvent();

  // Whether the stream has got past the event. Throws c10::Error on any failure of CUDA's.
  bool completed() const;

  // The holder's mark, which moves along.
  bool counted = false;

 private:
  PooledEvent(cudaEvent_t event, c10::DeviceIndex device) : event_(event), device_(device) {}

  cudaEvent_t event_;
  c10::DeviceIndex device_;
};

} // namespace pinbuddy
