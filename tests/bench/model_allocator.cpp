#include "model_allocator.h"

#include "buddy_181094.h"
#include "looked_up.h"

#include <c10/core/Event.h>

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace bench {
namespace {

constexpr std::size_t kSegment = std::size_t{1} << 30;
constexpr std::size_t kSegments = 8;

struct Held {
  Buddy181094::Block block;
  std::vector<c10::Stream> streams;
  std::size_t outstanding = 0;
};

class Model final : public at::HostAllocator {
 public:
  Model(at::HostAllocator* upstream, std::size_t threshold)
      : upstream_(upstream), threshold_(threshold), buddy_(kSegment, kSegments, pin, unpin) {}

  at::DataPtr allocate(std::size_t bytes) override {
    if (bytes < threshold_ || bytes == 0) {
      return upstream_->allocate(bytes);
    }
    reap();
    const Buddy181094::Block block = buddy_.allocate(bytes);
    if (!block.start) {
      return upstream_->allocate(bytes);
    }
    return {block.start, new Held{block, {}}, &Model::give_back, at::DeviceType::CPU};
  }

  bool record_event(void* memory, void* context, c10::Stream stream) override {
    if (!buddy_.owns(memory)) {
      return upstream_->record_event(memory, context, stream);
    }
    std::vector<c10::Stream>& streams = static_cast<Held*>(context)->streams;
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
      streams.push_back(stream);
    }
    return true;
  }

  void empty_cache() override {
    reap();
    buddy_.empty_cache();
    upstream_->empty_cache();
  }

  at::HostStats get_stats() override {
    at::HostStats stats = upstream_->get_stats();
    stats.allocated_bytes.increase(buddy_.pinned_bytes());
    return stats;
  }
  void reset_accumulated_stats() override {
    upstream_->reset_accumulated_stats();
  }
  void reset_peak_stats() override {
    upstream_->reset_peak_stats();
  }
  at::DeleterFnPtr raw_deleter() const override {
    return &Model::give_back;
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  static Model* instance;

 private:
  struct Pending {
    c10::Event event;
    Held* held;
  };

  static void give_back(void* context) {
    instance->free(static_cast<Held*>(context));
  }

  void free(Held* held) {
    if (held->streams.empty()) {
      release(held);
      return;
    }
    held->outstanding = held->streams.size();
    const std::lock_guard lock(events_mutex_);
    for (const c10::Stream& stream : held->streams) {
      c10::Event event = spare_.empty() ? c10::Event(c10::DeviceType::CUDA)
                                        : std::move(spare_.back());
      if (!spare_.empty()) {
        spare_.pop_back();
      }
      event.record(stream);
      pending_.push_back({std::move(event), held});
    }
  }

  // Like upstream's queue: stops at the first incomplete event.
  void reap() {
    const std::lock_guard lock(events_mutex_);
    while (!pending_.empty() && pending_.front().event.query()) {
      spare_.push_back(std::move(pending_.front().event));
      Held* held = pending_.front().held;
      pending_.pop_front();
      if (--held->outstanding == 0) {
        release(held);
      }
    }
  }

  void release(Held* held) {
    buddy_.free(held->block);
    delete held;
  }

  at::HostAllocator* const upstream_;
  const std::size_t threshold_;
  Buddy181094 buddy_;
  std::mutex events_mutex_;
  std::deque<Pending> pending_;
  std::vector<c10::Event> spare_;
};

Model* Model::instance = nullptr;

} // namespace

at::HostAllocator* make_model(at::HostAllocator* upstream, std::size_t threshold) {
  // Leaked: blocks may outlive every static object.
  Model::instance = new Model(upstream, threshold);
  return Model::instance;
}

} // namespace bench
