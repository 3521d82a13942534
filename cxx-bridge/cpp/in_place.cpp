#include "in_place.h"

#include <ATen/MapAllocator.h>
#include <c10/core/StorageImpl.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <typeinfo>
#include <utility>

#include "host_allocator.h"
#include "host_memory.h"
#include "lock.h"
#include "pinbuddy-bridge/src/lib.rs.h"

namespace pinbuddy {
namespace {

c10::StorageImpl& storage_at(std::size_t address) {
  return *reinterpret_cast<c10::StorageImpl*>(address);
}

// Lets other threads run Python meanwhile, if this thread has Python's lock. The process may have no Python.
class WithoutPythonsLock {
 public:
  WithoutPythonsLock() {
    const auto find = [](const char* name) {
      return reinterpret_cast<void* (*)()>(dlsym(RTLD_DEFAULT, name));
    };
    const auto mine = find("PyGILState_GetThisThreadState");
    const auto running = find("_PyThreadState_UncheckedGet");
    const auto save = find("PyEval_SaveThread");
    // Up to Python 3.11 the second is the state of whichever thread runs.
    if (mine != nullptr && running != nullptr && save != nullptr && mine() != nullptr && mine() == running()) {
      state_ = save();
    }
  }
  ~WithoutPythonsLock() {
    if (state_ == nullptr) {
      return;
    }
    try {
      reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "PyEval_RestoreThread"))(state_);
    } catch (...) {
      // An interpreter that ends has its other threads end here, which destructors above do not bear: this one stays.
      while (true) {
        pause();
      }
    }
  }
  WithoutPythonsLock(const WithoutPythonsLock&) = delete;
  WithoutPythonsLock& operator=(const WithoutPythonsLock&) = delete;

 private:
  void* state_ = nullptr;
};

// Memory of any kind, and its pin.
struct Holder {
  c10::DataPtr memory;
  std::uint64_t pin;
};

void delete_holder(void* context) {
  std::unique_ptr<Holder> holder(static_cast<Holder*>(context));
  bool may_go = false;
  {
    const WithoutPythonsLock released;
    may_go = engine_storage_dies(holder->pin, reinterpret_cast<std::size_t>(context));
  }
  if (!may_go) {
    (void)holder.release();
  }
}

// What PyTorch finds by its type: it looks like the mapping that its holder has.
class PinnedMap final : public at::MapAllocator {
 public:
  PinnedMap(const at::MapAllocator& map, Holder* holder)
      : MapAllocator(at::WITH_FD, "", memory_file(), at::ALLOCATOR_MAPPED_FROMFD | at::ALLOCATOR_MAPPED_KEEPFD, 1),
        holder_(holder) {
    // Its own mapping, of a byte, goes.
    MapAllocator::close();
    filename_ = map.filename();
    flags_ = map.flags();
    size_ = map.size();
    fd_ = map.fd();
    base_ptr_ = map.data();
  }
  ~PinnedMap() override {
    delete_holder(holder_);
  }
  Holder* holder() const {
    return holder_;
  }

 private:
  static int memory_file() {
    const int file = memfd_create("pinbuddy", MFD_CLOEXEC);
    TORCH_CHECK(file >= 0 && ftruncate(file, 1) == 0, "the kernel gives no file in memory");
    return file;
  }

  Holder* holder_;
};

Holder* holder_of(const c10::DataPtr& memory) {
  const auto* map = dynamic_cast<PinnedMap*>(at::MapAllocator::fromDataPtr(memory));
  return map != nullptr ? map->holder() : memory.cast_context<Holder>(&delete_holder);
}

// Guards what storages have their memory from.
std::mutex storages_mutex;

} // namespace

Place memory_of_storage(std::size_t address, bool shared, std::uint64_t& pin) {
  c10::StorageImpl& storage = storage_at(address);
  TORCH_CHECK(
      storage.device_type() == c10::DeviceType::CPU,
      "found memory of ", storage.device(), ", expected a CPU tensor's");
  // A copy that is made at the first store would not be pinned.
  const void* begin = storage.mutable_data();
  TORCH_CHECK(begin != nullptr, "found a tensor without memory, expected one that has some");
  Lock guard(storages_mutex);
  const c10::DataPtr& memory = storage.data_ptr();
  const Holder* holder = holder_of(memory);
  const at::MapAllocator* map = at::MapAllocator::fromDataPtr(memory);
  TORCH_CHECK(
      holder != nullptr || (map != nullptr ? typeid(*map) == typeid(at::MapAllocator) : !shared),
      "found memory shared by the strategy 'file_system', expected 'file_descriptor': "
      "torch.multiprocessing.set_sharing_strategy('file_descriptor')");
  pin = holder != nullptr ? holder->pin : 0;
  return Place{reinterpret_cast<std::size_t>(begin), storage.nbytes()};
}

void hold_storage(std::size_t at, std::uint64_t pin, std::size_t address) {
  c10::StorageImpl& storage = storage_at(at);
  Lock guard(storages_mutex);
  const c10::DataPtr& memory = storage.data_ptr();
  TORCH_CHECK(
      reinterpret_cast<std::size_t>(memory.get()) == address,
      "its memory was replaced meanwhile, expected a storage that no other thread changes");
  if (Holder* holder = holder_of(memory)) {
    holder->pin = pin;
    return;
  }
  auto holder = std::make_unique<Holder>(Holder{c10::DataPtr(), pin});
  void* context = holder.get();
  c10::DeleterFnPtr deleter = &delete_holder;
  if (const at::MapAllocator* map = at::MapAllocator::fromDataPtr(memory)) {
    context = new PinnedMap(*map, holder.get());
    deleter = memory.get_deleter();
  }
  c10::DataPtr fresh(memory.get(), context, deleter, memory.device());
  Holder* held = holder.release();
  held->memory = storage.set_data_ptr(std::move(fresh));
}

void let_go(std::size_t owner) {
  delete reinterpret_cast<Holder*>(owner);
}

void register_in_place(const Place& pages, bool read_only) {
  assert_no_lock_held("registering");
  void* begin = reinterpret_cast<void*>(pages.address);
  if (!read_only) {
    register_memory(begin, pages.bytes, /*fallback=*/-1);
  } else {
    c10::cuda::OptionalCUDAGuard used(c10::cuda::getDeviceIndexWithPrimaryContext());
    c10::cuda::CUDAStreamCaptureModeGuard unseen_by_captures(cudaStreamCaptureModeRelaxed);
    C10_CUDA_CHECK(cudaHostRegister(begin, pages.bytes, cudaHostRegisterPortable | cudaHostRegisterReadOnly));
  }
  try {
    require_one_address(begin);
  } catch (...) {
    unregister_memory(begin);
    throw;
  }
}

bool finish_devices() {
  assert_no_lock_held("waiting for devices");
  const auto idle = c10::cuda::CaptureStatus::None;
  if (something_is_captured() || c10::cuda::currentStreamCaptureStatusMayInitCtx() != idle) {
    return false;
  }
  c10::cuda::CUDAStreamCaptureModeGuard unseen_by_captures(cudaStreamCaptureModeRelaxed);
  for (c10::DeviceIndex device = 0; device < c10::cuda::device_count(); ++device) {
    if (!c10::cuda::hasPrimaryContext(device)) {
      continue;
    }
    const c10::cuda::CUDAGuard guard(device);
    const cudaError_t outcome = cudaDeviceSynchronize();
    if (outcome == cudaErrorStreamCaptureUnsupported) {
      // No later call is to meet it.
      (void)cudaGetLastError();
      return false;
    }
    C10_CUDA_CHECK(outcome);
  }
  return true;
}

} // namespace pinbuddy
