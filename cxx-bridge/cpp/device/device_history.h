// Planned blocks in PyTorch's own history (torch.cuda.memory._record_memory_history).
//
// The allocator below records what it does itself, and of a plan the regions only. Here is kept, by the same settings, what
// became of the planned blocks; a snapshot gets both, in the order of time, without the regions. Invariant: never more entries
// than the program has asked for. Knows no plan.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/ApproximateClock.h>
#include <c10/util/flat_hash_map.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pinbuddy {

class DeviceHistory {
 public:
  using Entry = c10::cuda::CUDACachingAllocator::TraceEntry;
  using When = c10::cuda::CUDACachingAllocator::RecordContext;
  // Where in the program a call came from; null if that is not kept.
  using Context = std::shared_ptr<c10::GatheredContext>;

  // A block of the current device's stream. Not rounded.
  struct Block {
    c10::DeviceIndex device;
    void* stream;
    std::size_t address;
    std::size_t requested;
  };

  // As the allocator below was told.
  void record(
      bool enabled,
      c10::cuda::CUDACachingAllocator::CreateContextFn recorder,
      std::size_t most,
      When when,
      bool clear,
      const std::vector<std::string>& skip);

  // Whether anything has to be said of blocks here. Takes no lock.
  bool any() const {
    return any_.load(std::memory_order_relaxed);
  }

  // Not under a lock, like the next ones: they may wait for Python's.
  void allocated(const Block& block, std::string metadata);
  // The program gave it up; and nothing uses it any more.
  void freed(const Block& block, std::string metadata);
  void completed(const Block& block);

  // The program says more of a block that lives.
  void annotated(const Block& block, std::string metadata);

  // Who asked for the block at this address.
  Context context_of(std::size_t address);

  // The allocator below was asked for a region, or given one, since this moment; no region is at the address 0, which says
  // that it was asked for a snapshot.
  void asked_for_region(c10::approx_time_t since, std::size_t address, std::size_t bytes);

  // Adds the entries to those of the allocator below.
  void add_to(c10::cuda::CUDACachingAllocator::SnapshotInfo& info);

  // What the thread compiles, as entries name it.
  static void push_compiled(std::string what);
  static void pop_compiled();

 private:
  struct Live {
    Context allocated;
    Context freed;
  };

  // A call of ours to the allocator below.
  struct Call {
    c10::approx_time_t since;
    c10::approx_time_t until;
    std::size_t address;
    std::size_t bytes;
  };

  // Where this call comes from, if that is kept of such calls.
  Context gather(When least) const;
  void push(Entry::Action action, const Block& block, Context context, std::string metadata);
  void update_any();

  std::atomic<bool> any_{false};
  std::atomic<c10::cuda::CUDACachingAllocator::CreateContextFn> recorder_{nullptr};
  std::atomic<When> when_{When::NEVER};

  std::mutex mutex_;
  bool enabled_ = false;
  std::size_t most_ = 1;
  // Names of actions.
  std::vector<std::string> skipped_;
  // By device.
  std::vector<std::deque<Entry>> entries_;
  ska::flat_hash_map<std::size_t, Live> live_;
  std::deque<Call> calls_;
  std::optional<c10::ApproximateClockToUnixTimeConverter> clock_;
};

} // namespace pinbuddy
