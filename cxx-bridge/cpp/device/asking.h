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

// Says so for as long as it lives.
class AskingFor {
 public:
  explicit AskingFor(Asking what) : before_(asking) {
    asking = what;
  }
  ~AskingFor() {
    asking = before_;
  }
  AskingFor(const AskingFor&) = delete;
  AskingFor& operator=(const AskingFor&) = delete;

 private:
  const Asking before_;
};

} // namespace pinbuddy
