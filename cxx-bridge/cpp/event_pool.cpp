#include "event_pool.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include <mutex>
#include <vector>

#include "lock.h"

namespace pinbuddy {
namespace {

class DevicePool {
 public:
  // An idle event, or null.
  cudaEvent_t take() {
    Lock guard(mutex_);
    if (idle_.empty()) {
      return nullptr;
    }
    cudaEvent_t event = idle_.back();
    idle_.pop_back();
    return event;
  }

  void put(cudaEvent_t event) {
    Lock guard(mutex_);
    idle_.push_back(event);
  }

 private:
  std::mutex mutex_;
  std::vector<cudaEvent_t> idle_;
};

DevicePool& pool_of(c10::DeviceIndex device) {
  // Leaked: events are put back until the very end of the process.
  static auto* pools = new std::vector<DevicePool>(c10::cuda::device_count());
  return pools->at(device);
}

} // namespace

PooledEvent PooledEvent::record(c10::cuda::CUDAStream stream) {
  assert_no_lock_held("recording an event");
  const c10::DeviceIndex device = stream.device_index();
  c10::cuda::CUDAGuard guard(device);
  cudaEvent_t event = pool_of(device).take();
  if (event == nullptr) {
    C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  // Owned from here on: if recording throws, the event returns to its pool.
  PooledEvent loan(event, device);
  C10_CUDA_CHECK(cudaEventRecord(event, stream));
  return loan;
}

bool PooledEvent::completed() const {
  assert_no_lock_held("querying an event");
  const cudaError_t status = cudaEventQuery(event_.get());
  if (status == cudaErrorNotReady) {
    // Not an error, but CUDA keeps it as the last one: clear it.
    (void)cudaGetLastError();
    return false;
  }
  C10_CUDA_CHECK(status);
  return true;
}

void PooledEvent::wait() const {
  assert_no_lock_held("waiting for an event");
  C10_CUDA_CHECK(cudaEventSynchronize(event_.get()));
}

void PooledEvent::Return::operator()(cudaEvent_t event) const {
  pool_of(device).put(event);
}

} // namespace pinbuddy
