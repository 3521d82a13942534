// What the allocator is told of captures and pools, for the allocator below and for plans alike.
//
// Knows no plan.
#pragma once

#include <functional>
#include <utility>

#include "captures.h"
#include "remembering.h"

namespace pinbuddy {

class Capturing : public Remembering {
 public:
  using Remembering::Remembering;

  void beginAllocateToPool(
      c10::DeviceIndex device,
      c10::MempoolId_t pool,
      std::function<bool(cudaStream_t)> filter) override {
    below_->beginAllocateToPool(device, pool, filter);
    captures_.begin(device, pool, std::move(filter));
  }

  void endAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool) override {
    // Before the graph goes, into which its filter looks.
    captures_.end(device, pool);
    below_->endAllocateToPool(device, pool);
  }

  void markCaptureBegin(c10::DeviceIndex device) {
    captures_.mark(1);
    Forwarding::markCaptureBegin(device);
  }

  void markCaptureEnd(c10::DeviceIndex device) {
    Forwarding::markCaptureEnd(device);
    captures_.mark(-1);
  }

 protected:
  Captures captures_;
};

} // namespace pinbuddy
