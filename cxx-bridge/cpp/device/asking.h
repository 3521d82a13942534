// What this thread asks the allocator below for: a trace and observers of failures tell them apart.
#pragma once

#include <cstdint>

namespace pinbuddy {

enum class Asking : std::uint8_t {
  kOrdinary,
  // Memory for a stream that need not be the current one, which no plan serves.
  kBeside,
  // A plan's region, which is no request of the program's.
  kRegion,
};

inline constinit thread_local Asking asking = Asking::kOrdinary;

// While it lives, a variable of this thread is set.
template <class T>
class Setting {
 public:
  Setting(T& it, T value) : it_(it), before_(it) {
    it_ = value;
  }
  ~Setting() {
    it_ = before_;
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  T& it_;
  const T before_;
};

} // namespace pinbuddy
