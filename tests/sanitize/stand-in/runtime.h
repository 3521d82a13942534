// A CUDA runtime as far as the C++ side of the bridge calls it: pinned memory is ordinary memory, and a stream
// is busy for some microseconds after each event that is recorded on it.
//
// Who hands one event to two holders, or releases memory twice, is ended.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNotReady = 600,
  cudaErrorHostMemoryNotRegistered = 713,
};
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone = 0 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeRelaxed = 2 };
constexpr unsigned cudaEventDisableTiming = 2;
constexpr unsigned cudaHostAllocDefault = 0;
constexpr unsigned cudaHostRegisterDefault = 0;
constexpr unsigned cudaHostRegisterPortable = 1;
constexpr unsigned cudaHostRegisterReadOnly = 8;

enum cudaDeviceAttr { cudaDevAttrIntegrated = 18, cudaDevAttrPageableMemoryAccessUsesHostPageTables = 100 };

namespace stand_in {

inline std::int64_t microseconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

// Whether the machine has several NUMA nodes, and devices on two of them.
inline bool has_nodes() {
  static const bool has = std::getenv("BUDDY_NUMA") != nullptr;
  return has;
}

struct Stream {
  std::atomic<std::int64_t> busy_until{0};
};

struct Event {
  // Not atomic: an event has one holder at a time.
  std::int64_t over_at = 0;
};

} // namespace stand_in

using cudaStream_t = stand_in::Stream*;
using cudaEvent_t = stand_in::Event*;

inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new stand_in::Event;
  return cudaSuccess;
}

inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  constexpr std::int64_t kBusy = 20;
  std::int64_t before = stream->busy_until.load();
  std::int64_t after = 0;
  do {
    after = std::max(before, stand_in::microseconds_now()) + kBusy;
  } while (!stream->busy_until.compare_exchange_weak(before, after));
  event->over_at = after;
  return cudaSuccess;
}

inline cudaError_t cudaEventQuery(cudaEvent_t event) {
  return stand_in::microseconds_now() >= event->over_at ? cudaSuccess : cudaErrorNotReady;
}

inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  while (cudaEventQuery(event) == cudaErrorNotReady) {
  }
  return cudaSuccess;
}

inline cudaError_t cudaGetLastError() {
  return cudaSuccess;
}

inline cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  // Upstream rounds requests above 2^63 bytes to 0.
  if (bytes == 0) {
    return cudaErrorMemoryAllocation;
  }
  *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *address == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

inline cudaError_t cudaFreeHost(void* address) {
  std::free(address);
  return cudaSuccess;
}

inline cudaError_t cudaFree(void*) {
  return cudaSuccess;
}

// A device with memory of its own.
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 0;
  return cudaSuccess;
}

inline cudaError_t cudaHostRegister(void*, std::size_t, unsigned) {
  return cudaSuccess;
}

inline cudaError_t cudaHostUnregister(void*) {
  return cudaSuccess;
}

inline cudaError_t cudaHostGetDevicePointer(void** on_device, void* address, unsigned) {
  *on_device = address;
  return cudaSuccess;
}

inline cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

inline cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int) {
  std::snprintf(text, static_cast<std::size_t>(bytes), "0000:00:00.0");
  return cudaSuccess;
}
