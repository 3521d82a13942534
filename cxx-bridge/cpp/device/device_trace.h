// What is recorded of a device's memory (BUDDY_DEVICE_TRACE), of which Rust is told.
//
// PyTorch's allocator and a plan's regions report here, each under a lock of its own. A block is named by its address while it
// lives. Invariant: an end is recorded only if the beginning was; that a place may be used again is recorded before anybody
// can be given it. Knows neither sinks nor files, which are Rust's.
#pragma once

#include <c10/util/flat_hash_map.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace pinbuddy {

// What this thread asks the allocator below for.
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

class DeviceTrace {
 public:
  // Of the device of this number.
  void name(std::uint32_t device) {
    device_ = device;
  }

  // Memory at this address was handed out to a stream. `planless`: no plan can serve such a request.
  void request(std::size_t address, std::size_t bytes, const void* stream, bool planless);

  // The program gave it up; and it may be used again, which is one event if no other stream used it.
  void free(std::size_t address);
  void done(std::size_t address);

  // Another stream uses it.
  void use(std::size_t address, const void* stream);

  // The allocator got memory from the driver, or gave it back.
  void segment(std::size_t bytes, bool gone);

 private:
  struct Live {
    std::uint64_t allocation = 0;
    // Other streams used it; and its end was recorded, after which it is not safe yet.
    bool used = false;
    bool freed = false;
  };

  // Under the lock; most requests are of the same stream as the last one.
  std::uint64_t number_of(const void* stream);

  std::uint32_t device_ = 0;
  std::mutex mutex_;
  // By address, and how many of them streams used; numbers of streams.
  ska::flat_hash_map<std::size_t, Live> live_;
  std::atomic<std::size_t> used_{0};
  ska::flat_hash_map<const void*, std::uint64_t> streams_;
  // No stream has this address; the default stream's is null.
  const void* last_stream_ = this;
  std::uint64_t last_number_ = 0;
};

} // namespace pinbuddy
