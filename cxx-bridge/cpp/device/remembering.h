// What the program asks of the history, for the allocator below and for planned blocks alike.
//
// Invariant: where no plan is used, only the allocator below remembers anything. Knows no plan.
#pragma once

#include <string>
#include <vector>

#include "device_history.h"
#include "forwarding.h"

namespace pinbuddy {

class Remembering : public Forwarding<device_memory::CUDAAllocator> {
 public:
  Remembering(device_memory::CUDAAllocator* below, bool planned) : Forwarding(below), planned_(planned) {}

  void recordHistory(
      bool enabled,
      device_memory::CreateContextFn context,
      std::size_t most,
      device_memory::RecordContext when,
      bool clear,
      const std::vector<std::string>& skip) override {
    below_->recordHistory(enabled, context, most, when, clear, skip);
    if (planned_) {
      history_.record(enabled, context, most, when, clear, skip);
    }
  }

  void pushCompileContext(std::string& data) override {
    below_->pushCompileContext(data);
    DeviceHistory::push_compiled(data);
  }

  void popCompileContext() override {
    below_->popCompileContext();
    DeviceHistory::pop_compiled();
  }

 protected:
  // Not under a lock: both may wait for Python's.
  [[gnu::noinline]] void note_alloc(const DeviceHistory::Block& block) {
    history_.allocated(block, history_.gather(DeviceHistory::When::STATE), below_->getUserMetadata());
  }

  [[gnu::noinline]] void note_free(const DeviceHistory::Block& block) {
    if (block.requested > 0) {
      history_.freed(block, history_.gather(DeviceHistory::When::ALL), below_->getUserMetadata());
    }
  }

  [[gnu::noinline]] void note_annotation(const DeviceHistory::Block& block, const std::string& metadata) {
    if (history_.any()) {
      history_.annotated(block, history_.gather(DeviceHistory::When::ALL), metadata);
    }
  }

  // Whether there are plans.
  const bool planned_;
  DeviceHistory history_;
};

} // namespace pinbuddy
