// What device_history.h declares; nothing before torch 2.11.
#include "../upstream.h"

#if PINBUDDY_TORCH_FROM(11)

#include "device_history.h"

#include <algorithm>

#include "../lock.h"

namespace pinbuddy {
namespace {

using Entry = DeviceHistory::Entry;

// Regions are rarely taken; of so many calls the times are kept.
constexpr std::size_t kMostCalls = 4096;

// The allocator below has a clock of its own, which tells the same microsecond or a few more or less.
constexpr c10::time_t kSlackUs = 100;

thread_local std::vector<std::string> compiled;

bool is_of_a_block(const Entry& entry) {
  return entry.action_ == Entry::ALLOC || entry.action_ == Entry::FREE_REQUESTED ||
      entry.action_ == Entry::FREE_COMPLETED;
}

// Only some releases have it.
template <class Actions>
constexpr std::optional<Entry::Action> annotation() {
  if constexpr (requires { Actions::ANNOTATE; }) {
    return Actions::ANNOTATE;
  }
  return std::nullopt;
}

// As the settings name those that are skipped.
const char* name_of(Entry::Action action) {
  return action == Entry::ALLOC          ? "alloc"
      : action == Entry::FREE_REQUESTED ? "free_requested"
      : action == Entry::FREE_COMPLETED ? "free_completed"
                                        : "annotate";
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
  skipped_ = skip;
  if (!enabled || clear) {
    entries_.clear();
    calls_.clear();
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

void DeviceHistory::asked_for_region(c10::approx_time_t since, std::size_t address, std::size_t bytes) {
  Lock guard(mutex_);
  if (enabled_) {
    calls_.push_back({since, c10::getApproximateTime(), address, bytes});
    if (calls_.size() > kMostCalls) {
      calls_.pop_front();
    }
  }
}

// Under the lock.
void DeviceHistory::push(Entry::Action action, const Block& block, Context context, std::string metadata) {
  if (!enabled_ || std::find(skipped_.begin(), skipped_.end(), name_of(action)) != skipped_.end()) {
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
      compiled.empty() ? "N/A" : compiled.back());
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
  struct Span {
    c10::time_t since;
    c10::time_t until;
    const Call& call;
  };
  std::vector<Span> spans;
  for (const Call& call : calls_) {
    spans.push_back({us(call.since) - kSlackUs, us(call.until) + kSlackUs, call});
  }
  const auto is_of_a_region = [&spans](const Entry& entry) {
    return std::any_of(spans.begin(), spans.end(), [&entry](const Span& it) {
      const bool is_it = it.call.address == 0
          ? entry.action_ == Entry::SNAPSHOT
          : is_of_a_block(entry) && entry.addr_ == it.call.address && entry.size_ == it.call.bytes;
      return is_it && it.since <= entry.time_.t_ && entry.time_.t_ <= it.until;
    });
  };
  info.device_traces.resize(std::max(info.device_traces.size(), entries_.size()));
  for (std::size_t device = 0; device < info.device_traces.size(); ++device) {
    auto& theirs = info.device_traces[device];
    std::erase_if(theirs, is_of_a_region);
    const auto ours = static_cast<std::ptrdiff_t>(theirs.size());
    if (device < entries_.size()) {
      theirs.insert(theirs.end(), entries_[device].begin(), entries_[device].end());
    }
    for (auto entry = theirs.begin() + ours; entry != theirs.end(); ++entry) {
      entry->time_.t_ = us(entry->time_.approx_t_);
    }
    const auto earlier = [](const Entry& one, const Entry& other) { return one.time_.t_ < other.time_.t_; };
    std::inplace_merge(theirs.begin(), theirs.begin() + ours, theirs.end(), earlier);
    if (theirs.size() > most_) {
      theirs.erase(theirs.begin(), theirs.end() - static_cast<std::ptrdiff_t>(most_));
    }
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
