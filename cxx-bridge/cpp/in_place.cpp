#include "in_place.h"

#include <ATen/MapAllocator.h>
#include <c10/core/StorageImpl.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "child.h"
#include "event_pool.h"
#include "host_memory.h"
#include "lock.h"
#include "pinbuddy-bridge/src/lib.rs.h"

namespace pinbuddy {
namespace {

using c10::cuda::CUDAStream;

c10::StorageImpl& storage_at(std::size_t address) {
  return *reinterpret_cast<c10::StorageImpl*>(address);
}

void end_pin(std::uint64_t pin) {
  if (pin != 0 && !is_child()) {
    engine_storage_dies(pin);
  }
}

// Memory of any kind, and the pin that ends before it goes.
struct Holder {
  c10::DataPtr memory;
  std::uint64_t pin;
};

void delete_holder(void* context) {
  const std::unique_ptr<Holder> holder(static_cast<Holder*>(context));
  end_pin(holder->pin);
}

// Names fields that MapAllocator keeps to its subclasses.
struct Fields : at::MapAllocator {
  static void swap(at::MapAllocator& one, at::MapAllocator& other) {
    std::swap(one.*&Fields::closed_, other.*&Fields::closed_);
    std::swap(one.*&Fields::filename_, other.*&Fields::filename_);
    std::swap(one.*&Fields::flags_, other.*&Fields::flags_);
    std::swap(one.*&Fields::size_, other.*&Fields::size_);
    std::swap(one.*&Fields::fd_, other.*&Fields::fd_);
    std::swap(one.*&Fields::base_ptr_, other.*&Fields::base_ptr_);
  }
};

// A mapping of a file. PyTorch finds it by its type.
class PinnedMap final : public at::MapAllocator {
 public:
  // Takes the mapping of `other`, which gets one of a page.
  explicit PinnedMap(at::MapAllocator& other)
      : MapAllocator(
            at::WITH_FD,
            "",
            memory_file(),
            at::ALLOCATOR_MAPPED_FROMFD | at::ALLOCATOR_MAPPED_KEEPFD,
            /*size=*/4096) {
    Fields::swap(*this, other);
  }
  ~PinnedMap() override {
    end_pin(pin);
    MapAllocator::close();
  }

  std::uint64_t pin = 0;

 private:
  static int memory_file() {
    const int file = memfd_create("pinbuddy", MFD_CLOEXEC);
    TORCH_CHECK(file >= 0 && ftruncate(file, 4096) == 0, "the kernel gives no file in memory");
    return file;
  }
};

Holder* holder_of(const c10::DataPtr& memory) {
  return memory.cast_context<Holder>(&delete_holder);
}

PinnedMap* map_of(const c10::DataPtr& memory) {
  return dynamic_cast<PinnedMap*>(at::MapAllocator::fromDataPtr(memory));
}

// Guards what storages have their memory from.
std::mutex storages_mutex;

struct Users {
  std::size_t end;
  std::uint64_t pin;
  // The last work of each stream.
  std::vector<std::pair<CUDAStream, PooledEvent>> events;
};

// Leaked: storages die until the very end of the process.
struct Table {
  std::mutex mutex;
  std::multimap<std::size_t, Users> by_start;
  std::size_t longest = 0;
  std::atomic<std::size_t> count{0};

  // Calls `act` for each pin that has this address.
  template <typename Act>
  void at(std::size_t address, Act act) {
    for (auto it = by_start.upper_bound(address); it != by_start.begin();) {
      --it;
      if (it->first + longest <= address) {
        return;
      }
      if (address < it->second.end) {
        act(it->second);
      }
    }
  }

  auto find(std::uint64_t pin) {
    return std::find_if(
        by_start.begin(), by_start.end(), [pin](const auto& it) { return it.second.pin == pin; });
  }
};

Table& table() {
  static auto* leaked = new Table();
  return *leaked;
}

} // namespace

Memory memory_of_storage(std::size_t address, bool shared) {
  c10::StorageImpl& storage = storage_at(address);
  TORCH_CHECK(
      storage.device_type() == c10::DeviceType::CPU,
      "found memory of ", storage.device(), ", expected a CPU tensor's");
  // A copy that is made at the first store would not be pinned.
  const void* begin = storage.mutable_data();
  TORCH_CHECK(begin != nullptr, "found a tensor without memory, expected one that has some");
  const c10::DataPtr& memory = storage.data_ptr();
  TORCH_CHECK(
      !shared || holder_of(memory) != nullptr || at::MapAllocator::fromDataPtr(memory) != nullptr,
      "found memory shared by the strategy 'file_system', expected 'file_descriptor': "
      "torch.multiprocessing.set_sharing_strategy('file_descriptor')");
  return Memory{reinterpret_cast<std::size_t>(begin), storage.nbytes()};
}

std::uint64_t pin_of_storage(std::size_t storage) {
  Lock guard(storages_mutex);
  const c10::DataPtr& memory = storage_at(storage).data_ptr();
  if (const Holder* holder = holder_of(memory)) {
    return holder->pin;
  }
  const PinnedMap* map = map_of(memory);
  return map != nullptr ? map->pin : 0;
}

void watch_storage(
    std::size_t address,
    std::uint64_t pin,
    std::size_t begin,
    std::size_t bytes) {
  c10::StorageImpl& storage = storage_at(address);
  TORCH_CHECK(pin_of_storage(address) == 0, "another thread pins it, too");
  {
    Table& users = table();
    Lock guard(users.mutex);
    users.by_start.emplace(begin, Users{begin + bytes, pin, {}});
    users.longest = std::max(users.longest, bytes);
    users.count.store(users.by_start.size(), std::memory_order_relaxed);
  }
  // What is replaced goes after the lock.
  c10::DataPtr replaced;
  Lock guard(storages_mutex);
  const c10::DataPtr& memory = storage.data_ptr();
  if (PinnedMap* map = map_of(memory)) {
    map->pin = pin;
  } else if (at::MapAllocator* plain = at::MapAllocator::fromDataPtr(memory)) {
    TORCH_CHECK(typeid(*plain) == typeid(at::MapAllocator), "found a mapping of an unknown type");
    auto made = std::make_unique<PinnedMap>(*plain);
    made->pin = pin;
    void* data = made->data();
    c10::DataPtr fresh(data, made.release(), memory.get_deleter(), memory.device());
    // It has a mapping of a page now.
    replaced = storage.set_data_ptr(std::move(fresh));
  } else {
    auto holder = std::make_unique<Holder>(Holder{c10::DataPtr(), pin});
    Holder* held = holder.get();
    c10::DataPtr fresh(memory.get(), holder.release(), &delete_holder, memory.device());
    held->memory = storage.set_data_ptr(std::move(fresh));
  }
}

void unwatch_storage(std::size_t address) {
  c10::StorageImpl& storage = storage_at(address);
  c10::DataPtr replaced;
  Lock guard(storages_mutex);
  if (PinnedMap* map = map_of(storage.data_ptr())) {
    map->pin = 0;
  } else if (Holder* held = holder_of(storage.data_ptr())) {
    held->pin = 0;
    // The holder, with nothing in it.
    replaced = storage.set_data_ptr(std::move(held->memory));
  }
}

void register_in_place(std::size_t address, std::size_t bytes, bool read_only) {
  register_memory(reinterpret_cast<void*>(address), bytes, /*fallback=*/-1, read_only);
  try {
    require_one_address(reinterpret_cast<void*>(address));
  } catch (...) {
    unregister_in_place(address);
    throw;
  }
}

void unregister_in_place(std::size_t address) {
  unregister_memory(reinterpret_cast<void*>(address));
}

void copy_across(std::size_t address) {
  assert_no_lock_held("copying");
  c10::cuda::OptionalCUDAGuard used;
  if (const auto device = c10::cuda::getDeviceIndexWithPrimaryContext()) {
    used.set_index(*device);
  }
  c10::cuda::CUDAStreamCaptureModeGuard unseen_by_captures(cudaStreamCaptureModeRelaxed);
  cudaStream_t stream = nullptr;
  C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  void* on_device = nullptr;
  cudaError_t outcome = cudaMalloc(&on_device, 2);
  if (outcome == cudaSuccess) {
    const auto* source = reinterpret_cast<const char*>(address) - 1;
    outcome = cudaMemcpyAsync(on_device, source, 2, cudaMemcpyHostToDevice, stream);
  }
  const cudaError_t done = cudaStreamSynchronize(stream);
  (void)cudaFree(on_device);
  (void)cudaStreamDestroy(stream);
  C10_CUDA_CHECK(outcome != cudaSuccess ? outcome : done);
}

void wait_for_users(rust::Slice<const std::uint64_t> pins) {
  assert_no_lock_held("waiting for streams");
  for (const std::uint64_t pin : pins) {
    decltype(Users::events) events;
    {
      Table& users = table();
      Lock guard(users.mutex);
      const auto found = users.find(pin);
      if (found == users.by_start.end()) {
        continue;
      }
      events.swap(found->second.events);
    }
    for (const auto& [stream, event] : events) {
      try {
        event.wait();
      } catch (const std::exception&) {
        // The device is lost, and so is its work.
      }
    }
  }
}

void forget_users(std::uint64_t pin) {
  Table& users = table();
  Lock guard(users.mutex);
  const auto found = users.find(pin);
  if (found != users.by_start.end()) {
    users.by_start.erase(found);
    users.count.store(users.by_start.size(), std::memory_order_relaxed);
  }
}

bool use_in_place(const void* address, CUDAStream stream) {
  Table& users = table();
  if (users.count.load(std::memory_order_relaxed) == 0) {
    return false;
  }
  const auto at = reinterpret_cast<std::size_t>(address);
  std::vector<std::uint64_t> pins;
  {
    Lock guard(users.mutex);
    users.at(at, [&](const Users& it) { pins.push_back(it.pin); });
  }
  cudaStreamCaptureStatus capture{};
  C10_CUDA_CHECK(cudaStreamIsCapturing(stream, &capture));
  if (capture != cudaStreamCaptureStatusNone) {
    // Nothing runs yet; a graph's memory is its owner's to keep.
    return !pins.empty();
  }
  for (const std::uint64_t pin : pins) {
    // Goes to its pool after the lock.
    PooledEvent event = PooledEvent::record(stream);
    Lock guard(users.mutex);
    users.at(at, [&](Users& it) {
      if (it.pin != pin) {
        return;
      }
      for (auto& [of, last] : it.events) {
        if (of == stream) {
          std::swap(last, event);
          return;
        }
      }
      it.events.emplace_back(stream, std::move(event));
    });
  }
  return !pins.empty();
}

} // namespace pinbuddy
