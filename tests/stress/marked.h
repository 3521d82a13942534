// Blocks with a mark of their own on every page, and what stress programs share.
//
// A mark is at both ends and in the middle of each page, and is checked before the block is freed: no two
// live blocks may share a byte. A damaged mark is counted and said, and the program goes on: `marks_lost()` at its end.
// Knows no library but PyTorch's allocator.
#pragma once

#include <ATen/core/CachingHostAllocator.h>
#include <torch/version.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

constexpr std::size_t kPage = 4096;
// Of ThreadSanitizer: Rust's threads fill blocks and hand them over, in an order that it does not see. Marks say whether two have one.
#define UNSEEN __attribute__((no_sanitize_thread))

inline at::HostAllocator* allocator = nullptr;
inline std::atomic<std::uint64_t> marks{1};
// Blocks whose mark was whole when they were freed, and those freed while their content was on its way.
inline std::atomic<std::uint64_t> whole{0};
inline std::atomic<std::uint64_t> unchecked{0};
// Damaged marks: more than one a block where it is checked before it is freed.
inline std::atomic<std::uint64_t> damaged{0};

using c10::CachingAllocator::Stat;

struct Counts {
  Stat pinned_bytes;
  // Not from 2.10 to 2.12, where upstream does not count frees without an event.
  std::optional<Stat> live_blocks;
  // Not before 2.13, where upstream subtracted a byte for each block that returned after an event.
  std::optional<Stat> live_bytes;
};

// Generic, so that only the release's own names need to exist.
inline Counts counts_of(const auto& stats) {
  if constexpr (requires { stats.active_requests; }) {
    Counts counts{stats.allocated_bytes, {}, {}};
#if TORCH_VERSION_MINOR >= 13
    counts.live_blocks = stats.active_requests;
    counts.live_bytes = stats.active_bytes;
#endif
    return counts;
  } else {
    return {stats.reserved_bytes, stats.allocation, {}};
  }
}

[[noreturn]] inline void fail(const char* what, std::size_t offset) {
  std::fprintf(stderr, "%s at offset %zu\n", what, offset);
  std::_Exit(1);
}

// Blocks that were freed with a damaged mark, or never freed. Once all are freed.
inline std::uint64_t marks_lost() {
  return marks - 1 - whole - unchecked;
}

// A block with its mark on every page.
class Marked {
 public:
  explicit Marked(std::size_t bytes)
      : data_(allocator->allocate(bytes)), bytes_(bytes), mark_(marks.fetch_add(1)) {
    for_each_word([&](std::uint64_t& word, std::size_t) UNSEEN { word = mark_; });
  }
  Marked(Marked&& other) noexcept
      : data_(std::move(other.data_)),
        bytes_(std::exchange(other.bytes_, 0)),
        mark_(other.mark_) {}
  Marked& operator=(Marked&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mark_, other.mark_);
    return *this;
  }
  ~Marked() {
    if (bytes_ != 0) {
      whole += check();
    }
  }

  // Whether its mark is whole; the first damages are said.
  bool check() {
    constexpr std::uint64_t kSaid = 10;
    bool is_whole = true;
    for_each_word([&](std::uint64_t& word, std::size_t offset) UNSEEN {
      if (word != mark_ && std::exchange(is_whole, false) && damaged.fetch_add(1) < kSaid) {
        std::fprintf(
            stderr,
            "somebody else wrote here at offset %zu (bytes: %zu; mark: %llu; found: %llu)\n",
            offset,
            bytes_,
            static_cast<unsigned long long>(mark_),
            static_cast<unsigned long long>(word));
      }
    });
    return is_whole;
  }

  std::uint64_t mark() const {
    return mark_;
  }
  // What is copied to it has another block's mark.
  void expect(std::uint64_t mark) {
    mark_ = mark;
  }

  // Frees it unchecked: its content is on its way.
  void let_go() {
    unchecked += bytes_ != 0;
    bytes_ = 0;
    data_.clear();
  }

  // A defect that has to be found.
  void damage() {
    for_each_word([](std::uint64_t& word, std::size_t) { word = ~word; });
  }

  void* data() const {
    return data_.get();
  }
  std::size_t bytes() const {
    return bytes_;
  }

  void record(c10::Stream stream) {
    if (!allocator->record_event(data_.get(), data_.get_context(), stream)) {
      fail("the block is unknown", 0);
    }
  }

 private:
  template <typename Act>
  void for_each_word(Act act) {
    if (bytes_ == 0) {
      // Moved from: another object owns the block.
      return;
    }
    auto* memory = static_cast<char*>(data_.get());
    const auto at = [&](std::size_t offset) {
      act(*reinterpret_cast<std::uint64_t*>(memory + offset), offset);
    };
    for (std::size_t page = 0; page + kPage <= bytes_; page += kPage) {
      at(page);
      at(page + kPage / 2);
    }
    at((bytes_ - sizeof(std::uint64_t)) / sizeof(std::uint64_t) * sizeof(std::uint64_t));
  }

  at::DataPtr data_;
  std::size_t bytes_;
  std::uint64_t mark_;
};

// After everything was freed, and the device has done its work: nothing is live or pinned any more.
inline void check_the_end() {
  allocator->empty_cache();
  const Counts counts = counts_of(allocator->get_stats());
  for (const auto& stat : {counts.live_blocks, counts.live_bytes}) {
    if (stat && (stat->current != 0 || stat->allocated != stat->freed || stat->peak <= 0)) {
      fail("the counters do not add up", 0);
    }
  }
  if (counts.pinned_bytes.current != 0) {
    fail("something stayed pinned", static_cast<std::size_t>(counts.pinned_bytes.current));
  }
}
