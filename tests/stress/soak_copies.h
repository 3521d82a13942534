// Copies on streams, both ways, for blocks that are freed while a copy has them in flight.
//
// A lane is a stream with device memory of its own. A block's content is sent there, and fetched into another block: a lane's
// work is done in order, so its memory is free again when the next trip's turn comes. Knows the runtime's entry
// points by their names, and neither CUDA's headers nor the allocator.
#pragma once

#include "marked.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

template <typename F>
F function(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
}

// Calls an entry point of the runtime, which has to succeed.
template <typename... Arguments>
void runtime(const char* name, Arguments... arguments) {
  const auto call = function<int (*)(Arguments...)>(name);
  const int error = call != nullptr ? call(arguments...) : -1;
  if (error != 0) {
    fail(name, static_cast<std::size_t>(error));
  }
}

// The runtime's handle of a stream. Releases that do not tell it have copies on the default stream.
template <typename Guard>
void* handle_of(const Guard& cuda, c10::Stream stream) {
  if constexpr (requires { cuda.getStreamNativeHandle(stream); }) {
    return cuda.getStreamNativeHandle(stream);
  } else {
    return nullptr;
  }
}

class Lane {
 public:
  static constexpr std::size_t kBytes = 16ul << 20;

  // Who sends and fetches.
  std::mutex taken;

  Lane(c10::Stream stream, void* handle) : stream_(stream), handle_(handle) {
    runtime("cudaMalloc", &memory_, kBytes);
    // All of it is resident from now on. The default stream does it, in no order with that of the lane.
    runtime("cudaMemset", memory_, 0, kBytes);
    runtime("cudaDeviceSynchronize");
  }

  void send(Marked& block) {
    copy(memory_, block.data(), block.bytes(), kToDevice);
    block.record(stream_);
  }
  // The content of the block that was sent last, which had this mark.
  void fetch(Marked& block, std::uint64_t mark) {
    copy(block.data(), memory_, block.bytes(), kToHost);
    block.record(stream_);
    block.expect(mark);
  }
  // Waits for what was asked for until now.
  void wait() {
    runtime("cudaStreamSynchronize", handle_);
  }
  // Has it get stuck, where the runtime is simulated.
  void hold() {
    if (const auto hold = function<int (*)(void*)>("pinbuddy_sim_hold")) {
      hold(handle_);
    }
  }

 private:
  static constexpr int kToDevice = 1;
  static constexpr int kToHost = 2;

  void copy(void* target, const void* source, std::size_t bytes, int way) {
    runtime("cudaMemcpyAsync", target, source, bytes, way, handle_);
  }

  c10::Stream stream_;
  void* handle_;
  void* memory_ = nullptr;
};

// All lanes of the process, which live as long as it does.
class Lanes {
 public:
  explicit Lanes(std::size_t count) {
    const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
    const c10::Device device = cuda.getDevice();
    for (std::size_t i = 0; i < count; ++i) {
      c10::Stream stream = cuda.getStreamFromGlobalPool(device);
      void* handle = handle_of(cuda, stream);
      if (handle == nullptr) {
        stream = cuda.getDefaultStream(device);
      }
      all_.push_back(std::make_unique<Lane>(stream, handle));
    }
  }

  Lane& any(std::mt19937_64& random) {
    return *all_[random() % all_.size()];
  }

  // Streams get stuck and go on, so that copies stay in flight, and those of several streams end out of order.
  void hold_up(std::chrono::steady_clock::time_point until, std::uint64_t seed) {
    const auto let_go = function<void (*)()>("pinbuddy_sim_let_go");
    std::mt19937_64 random(seed);
    const auto pause = [&](std::uint64_t most) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % most));
    };
    while (let_go != nullptr && std::chrono::steady_clock::now() < until) {
      for (auto& lane : all_) {
        if (random() % 2 == 0) {
          lane->hold();
        }
      }
      pause(30);
      let_go();
      pause(10);
    }
  }

 private:
  std::vector<std::unique_ptr<Lane>> all_;
};

// Whether a copy has any of the block in flight, as far as it is watched (PINBUDDY_SIM_HAZARDS=1).
inline bool is_in_flight(const Marked& block) {
  const auto ask = function<std::size_t (*)(void*, std::size_t)>("pinbuddy_sim_in_flight");
  return ask != nullptr && ask(block.data(), block.bytes()) != 0;
}
