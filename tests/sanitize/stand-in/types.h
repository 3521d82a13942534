// The types of c10 that the C++ side of the bridge names, as small as they can be.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "runtime.h"

#define C10_LIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 1))
#define C10_UNLIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 0))
#define TORCH_CHECK(condition, ...) \
  do { \
    if (!(condition)) { \
      throw c10::Error(c10::joined(__VA_ARGS__)); \
    } \
  } while (false)
#define TORCH_INTERNAL_ASSERT(condition, ...) TORCH_CHECK(condition, "not so: " #condition)
#define TORCH_WARN(...) c10::warn(c10::joined(__VA_ARGS__))
#define TORCH_WARN_ONCE(...) c10::warn(c10::joined(__VA_ARGS__))
#define C10_CUDA_CHECK(call) TORCH_CHECK((call) == cudaSuccess, "CUDA failed: " #call)

namespace c10 {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  void add_context(const std::string&) {}
  const char* what_without_backtrace() const noexcept {
    return what();
  }
};

template <typename... Parts>
std::string joined(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

inline void warn(const std::string& text) {
  std::fprintf(stderr, "warning: %s\n", text.c_str());
  std::abort();
}

struct GatheredContext {
  virtual ~GatheredContext() = default;
};

using DeviceIndex = std::int8_t;
using DeleterFnPtr = void (*)(void*);

enum class DeviceType { CPU, CUDA };
constexpr DeviceType kCUDA = DeviceType::CUDA;

class Device {
 public:
  explicit Device(DeviceIndex index) : index_(index) {}
  DeviceIndex index() const {
    return index_;
  }

 private:
  DeviceIndex index_;
};

namespace cuda {
constexpr DeviceIndex kDevices = 2;
constexpr std::size_t kStreams = 8;

inline stand_in::Stream streams[kDevices][kStreams];
} // namespace cuda

// The default stream is number 0.
class Stream {
 public:
  Stream(DeviceIndex device, std::size_t number) : device_(device), number_(number) {}
  DeviceIndex device_index() const {
    return device_;
  }
  std::size_t id() const {
    return number_;
  }
  bool operator==(const Stream&) const = default;

 private:
  DeviceIndex device_;
  std::size_t number_;
};

namespace cuda {

class CUDAStream : public Stream {
 public:
  explicit CUDAStream(const Stream& stream) : Stream(stream) {}
  operator cudaStream_t() const {
    return &streams[device_index()][id()];
  }
  bool operator==(const CUDAStream&) const = default;
};

inline CUDAStream getCurrentCUDAStream() {
  return CUDAStream(Stream(0, 0));
}

inline DeviceIndex device_count() {
  return kDevices;
}
inline DeviceIndex current_device() {
  // Of machines with several nodes every other thread uses the second device.
  static std::atomic<unsigned> threads{0};
  thread_local const unsigned number = threads.fetch_add(1);
  return stand_in::has_nodes() ? static_cast<DeviceIndex>(number % kDevices) : DeviceIndex{0};
}
inline void set_device(DeviceIndex) {}
inline std::optional<DeviceIndex> getDeviceIndexWithPrimaryContext() {
  return 0;
}

struct CUDAGuard {
  explicit CUDAGuard(DeviceIndex) {}
};
struct OptionalCUDAGuard {
  void set_index(DeviceIndex) {}
};
struct CUDAStreamCaptureModeGuard {
  explicit CUDAStreamCaptureModeGuard(cudaStreamCaptureMode) {}
};

namespace CUDACachingAllocator {

struct CUDAAllocatorConfig {
  static bool pinned_use_cuda_host_register() {
    return false;
  }
  static std::size_t pinned_num_register_threads() {
    return 1;
  }
  static bool pinned_use_background_threads() {
    return false;
  }
};

} // namespace CUDACachingAllocator
} // namespace cuda

namespace impl {

struct VirtualGuardImpl {
  explicit VirtualGuardImpl(DeviceType) {}
  Device getDevice() const {
    return Device(0);
  }
  Stream getStreamFromGlobalPool(Device device) const {
    static std::atomic<std::size_t> given{0};
    return {device.index(), given.fetch_add(1) % (cuda::kStreams - 1) + 1};
  }
  void synchronizeDevice(DeviceIndex device) const {
    for (stand_in::Stream& stream : cuda::streams[device]) {
      while (stand_in::microseconds_now() < stream.busy_until.load()) {
      }
    }
  }
};

} // namespace impl

namespace llvm {

inline std::uint64_t PowerOf2Ceil(std::uint64_t value) {
  // As LLVM's, which overflows.
  return value > std::uint64_t{1} << 63 ? 0 : std::bit_ceil(value);
}

} // namespace llvm

template <typename Act>
class ScopeExit {
 public:
  explicit ScopeExit(Act act) : act_(std::move(act)) {}
  ~ScopeExit() {
    act_();
  }
  ScopeExit(const ScopeExit&) = delete;
  ScopeExit& operator=(const ScopeExit&) = delete;

 private:
  Act act_;
};

template <typename Act>
ScopeExit<Act> make_scope_exit(Act act) {
  return ScopeExit<Act>(std::move(act));
}

} // namespace c10

template <>
struct std::hash<c10::cuda::CUDAStream> {
  std::size_t operator()(const c10::cuda::CUDAStream& stream) const {
    return stream.id() * 16 + static_cast<std::size_t>(stream.device_index());
  }
};

namespace ska {

template <typename Key, typename Value>
using flat_hash_map = std::unordered_map<Key, Value>;
template <typename Key>
using flat_hash_set = std::unordered_set<Key>;

} // namespace ska
