// Allocate and free on the allocator of device memory, as a process has it.
#pragma once

#include <c10/core/Allocator.h>

#include "requests.h"

#include <cstddef>
#include <vector>

namespace bench {

// Runs a pattern of requests (requests.h) on the allocator of the current device, on the current stream; continues where
// the last call ended. Events and batches are left out.
class DeviceLoop {
 public:
  explicit DeviceLoop(Requests requests);

  void run(long pairs);

 private:
  c10::Allocator* const allocator_;
  const Requests requests_;
  std::vector<c10::DataPtr> live_;
  std::size_t next_ = 0;
};

} // namespace bench
