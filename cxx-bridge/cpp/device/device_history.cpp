// What device_history.h declares; nothing before torch 2.11.
#include "../upstream.h"

#if PINBUDDY_TORCH_FROM(11)

#include "device_history.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "../lock.h"

namespace pinbuddy {
namespace {

using Entry = DeviceHistory::Entry;

// What was compiled, as entries of ours name it to the allocator below.
constexpr std::string_view kHidden = "pinbuddy's region: ";

thread_local std::vector<std::string> compiled;

std::string now_compiled() {
  return compiled.empty() ? "N/A" : compiled.back();
}

// Of a region's block, or of a snapshot of ours. What the driver gave for it stays.
bool is_hidden(const Entry& entry) {
  return entry.compile_context_.starts_with(kHidden) &&
      (entry.action_ == Entry::ALLOC || entry.action_ == Entry::FREE_REQUESTED ||
       entry.action_ == Entry::FREE_COMPLETED || entry.action_ == Entry::SNAPSHOT);
}

// Only some releases have it.
template <class Actions>
constexpr std::optional<Entry::Action> annotation() {
  if constexpr (requires { Actions::ANNOTATE; }) {
    return Actions::ANNOTATE;
  }
  return std::nullopt;
}

std::optional<Entry::Action> action_named(const std::string& name) {
  return name == "alloc"     ? std::optional(Entry::ALLOC)
      : name == "free_requested" ? std::optional(Entry::FREE_REQUESTED)
      : name == "free_completed" ? std::optional(Entry::FREE_COMPLETED)
      : name == "annotate"       ? annotation<Entry>()
                                 : std::nullopt;
}

} // namespace

void DeviceHistory::record(
    bool enabled,
    c10::cuda::CUDACachingAllocator::CreateContextFn recorder,
    std::size_t most,
    When when,
    bool clear,
    const std::vector<std::string>& skip) {
  Lock guard(mutex_);
  enabled_ = enabled;
  recorder_.store(enabled ? recorder : nullptr);
  when_.store(enabled ? when : When::NEVER);
  most_ = std::max<std::size_t>(most, 1);
  skipped_.clear();
  for (const std::string& name : skip) {
    if (const auto action = action_named(name)) {
      skipped_.push_back(*action);
    }
  }
  if (!enabled || clear) {
    entries_.clear();
  }
  if (enabled && !clock_) {
    clock_.emplace();
  }
  update_any();
}

DeviceHistory::Context DeviceHistory::gather(When least) const {
  const auto recorder = recorder_.load();
  return recorder != nullptr && when_.load() >= least ? recorder() : nullptr;
}

void DeviceHistory::allocated(const Block& block, std::string metadata) {
  Context context = gather(When::STATE);
  Lock guard(mutex_);
  live_[block.address] = {.allocated = context, .freed = nullptr};
  push(Entry::ALLOC, block, std::move(context), std::move(metadata));
  update_any();
}

void DeviceHistory::freed(const Block& block, std::string metadata) {
  Context context = gather(When::ALL);
  Lock guard(mutex_);
  Live& live = live_[block.address];
  live.freed = context != nullptr ? std::move(context) : live.allocated;
  push(Entry::FREE_REQUESTED, block, live.freed, std::move(metadata));
  update_any();
}

void DeviceHistory::completed(const Block& block) {
  Lock guard(mutex_);
  Context context;
  if (const auto found = live_.find(block.address); found != live_.end()) {
    context = std::move(found->second.freed);
    live_.erase(found);
  }
  push(Entry::FREE_COMPLETED, block, std::move(context), {});
  update_any();
}

void DeviceHistory::annotated(const Block& block, std::string metadata) {
  if (const auto action = annotation<Entry>(); action && any()) {
    Context context = gather(When::ALL);
    Lock guard(mutex_);
    push(*action, block, std::move(context), std::move(metadata));
  }
}

DeviceHistory::Context DeviceHistory::context_of(std::size_t address) {
  if (!any()) {
    return nullptr;
  }
  Lock guard(mutex_);
  const auto found = live_.find(address);
  return found == live_.end() ? nullptr : found->second.allocated;
}

DeviceHistory::Hidden::Hidden(c10::cuda::CUDACachingAllocator::CUDAAllocator& below) : below_(below) {
  std::string name = std::string(kHidden) + now_compiled();
  below_.pushCompileContext(name);
}

// Under the lock.
void DeviceHistory::push(Entry::Action action, const Block& block, Context context, std::string metadata) {
  if (!enabled_ || std::find(skipped_.begin(), skipped_.end(), action) != skipped_.end()) {
    return;
  }
  const auto device = static_cast<std::size_t>(block.device);
  if (entries_.size() <= device) {
    entries_.resize(device + 1);
  }
  auto& entries = entries_[device];
  Entry& entry = entries.emplace_back(
      action,
      block.device,
      block.address,
      block.requested,
      block.stream,
      c10::MempoolId_t{0, 0},
      c10::getApproximateTime(),
      when_.load() >= When::ALLOC ? std::move(context) : nullptr,
      now_compiled());
  entry.user_metadata_ = std::move(metadata);
  if (entries.size() > most_) {
    entries.pop_front();
  }
}

// Under the lock. Contexts of blocks that live are kept although the history is not recorded any more.
void DeviceHistory::update_any() {
  any_.store(enabled_ || !live_.empty(), std::memory_order_relaxed);
}

void DeviceHistory::add_to(c10::cuda::CUDACachingAllocator::SnapshotInfo& info) {
  if (!any()) {
    return;
  }
  Lock guard(mutex_);
  if (!enabled_ || !clock_) {
    return;
  }
  const auto convert = clock_->makeConverter();
  const auto us = [&convert](c10::approx_time_t time) { return convert(time) / 1000; };
  info.device_traces.resize(std::max(info.device_traces.size(), entries_.size()));
  for (std::size_t device = 0; device < info.device_traces.size(); ++device) {
    auto& theirs = info.device_traces[device];
    std::erase_if(theirs, is_hidden);
    for (Entry& entry : theirs) {
      if (entry.compile_context_.starts_with(kHidden)) {
        entry.compile_context_.erase(0, kHidden.size());
      }
    }
    std::vector<Entry> ours;
    if (device < entries_.size()) {
      ours.assign(entries_[device].begin(), entries_[device].end());
    }
    for (Entry& entry : ours) {
      entry.time_.t_ = us(entry.time_.approx_t_);
    }
    std::vector<Entry> all;
    all.reserve(theirs.size() + ours.size());
    std::merge(
        std::make_move_iterator(theirs.begin()),
        std::make_move_iterator(theirs.end()),
        std::make_move_iterator(ours.begin()),
        std::make_move_iterator(ours.end()),
        std::back_inserter(all),
        [](const Entry& one, const Entry& other) { return one.time_.t_ < other.time_.t_; });
    if (all.size() > most_) {
      all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(most_));
    }
    theirs = std::move(all);
  }
}

void DeviceHistory::push_compiled(std::string what) {
  compiled.push_back(std::move(what));
}

void DeviceHistory::pop_compiled() {
  if (!compiled.empty()) {
    compiled.pop_back();
  }
}

} // namespace pinbuddy

#endif
