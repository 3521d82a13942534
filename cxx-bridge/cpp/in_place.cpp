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
#include <unistd.h>

#include <mutex>
#include <typeinfo>
#include <utility>

#include "lock.h"
#include "pinbuddy-bridge/src/lib.rs.h"
#include "upstream.h"

namespace pinbuddy {
namespace {

// Asks whether memory may go; other threads run Python meanwhile, if this one has Python's lock. The process may have no Python.
bool may_go(std::uint64_t pin, void* owner) {
  const auto find = [](const char* name) {
    return reinterpret_cast<void* (*)()>(dlsym(RTLD_DEFAULT, name));
  };
  const auto mine = find("PyGILState_GetThisThreadState");
  const auto newer = find("PyThreadState_GetUnchecked");
  const auto running = newer != nullptr ? newer : find("_PyThreadState_UncheckedGet");
  const auto save = find("PyEval_SaveThread");
  // Up to Python 3.11 the second is the state of whichever thread runs.
  const bool has_lock = mine != nullptr && running != nullptr && mine() != nullptr && mine() == running();
  void* state = has_lock ? save() : nullptr;
  const bool answer = engine_storage_dies(pin, reinterpret_cast<std::size_t>(owner));
  try {
    if (has_lock) {
      reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "PyEval_RestoreThread"))(state);
    }
  } catch (...) {
    // An interpreter that ends has its other threads end here, which destructors above do not bear: this one stays.
    while (true) {
      pause();
    }
  }
  return answer;
}

// Memory of any kind, and its pin.
struct Holder {
  c10::DataPtr memory;
  std::uint64_t pin;
};

void delete_holder(void* context) {
  auto* holder = static_cast<Holder*>(context);
  if (may_go(holder->pin, holder)) {
    delete holder;
  }
}

// What PyTorch finds by its type: it looks like the mapping that its holder has.
class PinnedMap final : public at::MapAllocator {
 public:
  PinnedMap(const at::MapAllocator& map, Holder* held)
      : MapAllocator(at::WITH_FD, "", /*fd=*/-1, /*flags=*/0, /*size=*/0), holder(held) {
    // It maps nothing, and closes nothing.
    MapAllocator::close();
    filename_ = map.filename();
    flags_ = map.flags();
    size_ = map.size();
    fd_ = map.fd();
    base_ptr_ = map.data();
  }
  ~PinnedMap() override {
    // Its holder's mapping reports its end.
    size_ = 0;
    delete_holder(holder);
  }

  Holder* const holder;
};

Holder* holder_of(const c10::DataPtr& memory) {
  const auto* map = dynamic_cast<PinnedMap*>(at::MapAllocator::fromDataPtr(memory));
  return map != nullptr ? map->holder : memory.cast_context<Holder>(&delete_holder);
}

// Guards what storages have their memory from.
std::mutex storages_mutex;

} // namespace

Place memory_of_storage(std::size_t address, bool shared, std::uint64_t& pin) {
  c10::StorageImpl& storage = *reinterpret_cast<c10::StorageImpl*>(address);
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
  c10::StorageImpl& storage = *reinterpret_cast<c10::StorageImpl*>(at);
  Lock guard(storages_mutex);
  const c10::DataPtr& memory = storage.data_ptr();
  TORCH_CHECK(
      reinterpret_cast<std::size_t>(memory.get()) == address,
      "its memory was replaced meanwhile, expected a storage that no other thread changes");
  if (Holder* holder = holder_of(memory)) {
    holder->pin = pin;
    return;
  }
  auto* holder = new Holder{c10::DataPtr(), pin};
  const at::MapAllocator* map = at::MapAllocator::fromDataPtr(memory);
  void* context = map != nullptr ? static_cast<void*>(new PinnedMap(*map, holder)) : holder;
  const auto deleter = map != nullptr ? memory.get_deleter() : &delete_holder;
  holder->memory = storage.set_data_ptr(c10::DataPtr(memory.get(), context, deleter, memory.device()));
}

void let_go(std::size_t owner) {
  delete reinterpret_cast<Holder*>(owner);
}

void note_in_place(std::size_t address, std::size_t bytes) {
#if PINBUDDY_HAS_EXTERNAL_PINS
  // It may gather Python's stack.
  assert_no_lock_held("writing history");
  at::HostAllocator* history = at::getHostAllocator(at::kCUDA);
  void* memory = reinterpret_cast<void*>(address);
  bytes != 0 ? history->record_external_register(memory, bytes) : history->record_external_unregister(memory);
#else
  static_cast<void>(address), static_cast<void>(bytes);
#endif
}

bool finish_devices() {
  assert_no_lock_held("waiting for devices");
  const auto captures = [] {
    // Asked of a device without a context, the second would make one.
    return something_is_captured() ||
        (c10::cuda::hasPrimaryContext(c10::cuda::current_device()) &&
         c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None);
  };
  c10::cuda::CUDAStreamCaptureModeGuard unseen_by_captures(cudaStreamCaptureModeRelaxed);
  for (c10::DeviceIndex device = 0; device < c10::cuda::device_count(); ++device) {
    if (!c10::cuda::hasPrimaryContext(device)) {
      continue;
    }
    // Each time: the wait for the last one may have been long.
    if (captures()) {
      return false;
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
