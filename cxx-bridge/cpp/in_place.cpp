#include "in_place.h"

#include <ATen/MapAllocator.h>
#include <c10/core/StorageImpl.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <iterator>
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
    if (mine != nullptr && running != nullptr && save != nullptr && mine() != nullptr &&
        mine() == running()) {
      state_ = save();
    }
  }
  ~WithoutPythonsLock() {
    if (state_ != nullptr) {
      reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "PyEval_RestoreThread"))(state_);
    }
  }
  WithoutPythonsLock(const WithoutPythonsLock&) = delete;
  WithoutPythonsLock& operator=(const WithoutPythonsLock&) = delete;

 private:
  void* state_ = nullptr;
};

// Whether memory with this pin may be given back.
bool end_pin(std::uint64_t pin) {
  if (pin == 0 || is_child()) {
    return true;
  }
  const WithoutPythonsLock released;
  return engine_storage_dies(pin);
}

// Memory of any kind, and the pin that ends before it goes.
struct Holder {
  c10::DataPtr memory;
  std::uint64_t pin;
};

void delete_holder(void* context) {
  const std::unique_ptr<Holder> holder(static_cast<Holder*>(context));
  if (!end_pin(holder->pin)) {
    (void)holder->memory.release_context();
  }
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
            /*size=*/1) {
    Fields::swap(*this, other);
  }
  ~PinnedMap() override {
    // What counts as closed stays mapped.
    closed_ = !end_pin(pin) || closed_;
    MapAllocator::close();
  }

  std::uint64_t pin = 0;

 private:
  static int memory_file() {
    const int file = memfd_create("pinbuddy", MFD_CLOEXEC);
    TORCH_CHECK(file >= 0 && ftruncate(file, 1) == 0, "the kernel gives no file in memory");
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
  // The last work of each stream.
  std::vector<std::pair<CUDAStream, PooledEvent>> events;
};

// By where a pin's pages begin; no two pins have a page in common. Leaked: storages die until the very end of the process.
struct Table {
  std::mutex mutex;
  std::map<std::size_t, Users> pins;
  std::atomic<std::size_t> count{0};

  // What has this address, or null.
  Users* at(std::size_t address) {
    const auto after = pins.upper_bound(address);
    if (after == pins.begin()) {
      return nullptr;
    }
    Users& users = std::prev(after)->second;
    return address < users.end ? &users : nullptr;
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
  Lock guard(storages_mutex);
  const c10::DataPtr& memory = storage.data_ptr();
  const at::MapAllocator* map = at::MapAllocator::fromDataPtr(memory);
  TORCH_CHECK(
      !shared || map != nullptr || holder_of(memory) != nullptr,
      "found memory shared by the strategy 'file_system', expected 'file_descriptor': "
      "torch.multiprocessing.set_sharing_strategy('file_descriptor')");
  TORCH_CHECK(
      map == nullptr || map_of(memory) != nullptr || typeid(*map) == typeid(at::MapAllocator),
      "found a mapping of a type that is not PyTorch's, expected torch.from_file's or share_memory_'s");
  return Memory{reinterpret_cast<std::size_t>(begin), storage.nbytes()};
}

std::uint64_t pin_of_storage(std::size_t storage) {
  Lock guard(storages_mutex);
  // Fake and lazily copied storages refuse `data_ptr`; they have no pin.
  const c10::DataPtr& memory = storage_at(storage).data_ptr();
  if (const Holder* holder = holder_of(memory)) {
    return holder->pin;
  }
  const PinnedMap* map = map_of(memory);
  return map != nullptr ? map->pin : 0;
}

void watch_storage(
    std::size_t at,
    std::uint64_t pin,
    std::size_t address,
    const Memory& pages) {
  c10::StorageImpl& storage = storage_at(at);
  // What is replaced goes after the lock.
  c10::DataPtr replaced;
  {
    Lock guard(storages_mutex);
    const c10::DataPtr& memory = storage.data_ptr();
    TORCH_CHECK(
        reinterpret_cast<std::size_t>(memory.get()) == address,
        "its memory was replaced meanwhile, expected a storage that no other thread changes");
    if (PinnedMap* map = map_of(memory)) {
      map->pin = pin;
    } else if (Holder* holder = holder_of(memory)) {
      holder->pin = pin;
    } else if (at::MapAllocator* plain = at::MapAllocator::fromDataPtr(memory)) {
      auto made = std::make_unique<PinnedMap>(*plain);
      made->pin = pin;
      void* data = made->data();
      c10::DataPtr fresh(data, made.release(), memory.get_deleter(), memory.device());
      // It has a mapping of a page now.
      replaced = storage.set_data_ptr(std::move(fresh));
    } else {
      auto made = std::make_unique<Holder>(Holder{c10::DataPtr(), pin});
      Holder* held = made.get();
      c10::DataPtr fresh(memory.get(), made.release(), &delete_holder, memory.device());
      held->memory = storage.set_data_ptr(std::move(fresh));
    }
  }
  Table& users = table();
  Lock guard(users.mutex);
  users.pins.insert_or_assign(pages.address, Users{pages.address + pages.bytes, {}});
  users.count.store(users.pins.size(), std::memory_order_relaxed);
}

void register_in_place(const Memory& pages, bool read_only) {
  void* begin = reinterpret_cast<void*>(pages.address);
  register_memory(begin, pages.bytes, /*fallback=*/-1, read_only);
  try {
    require_one_address(begin);
  } catch (...) {
    unregister_memory(begin);
    throw;
  }
}

void unregister_in_place(const Memory& pages) {
  unregister_memory(reinterpret_cast<void*>(pages.address));
}

bool users_are_done(std::size_t begin) {
  // A stream of the program may be captured, which has nothing to do with this.
  c10::cuda::CUDAStreamCaptureModeGuard unseen_by_captures(cudaStreamCaptureModeRelaxed);
  Table& users = table();
  decltype(Users::events) events;
  {
    Lock guard(users.mutex);
    if (const auto found = users.pins.find(begin); found != users.pins.end()) {
      events.swap(found->second.events);
    }
  }
  std::exception_ptr failed;
  bool done = true;
  for (auto& use : events) {
    try {
      if (failed == nullptr && use.second.completed()) {
        continue;
      }
    } catch (...) {
      failed = std::current_exception();
    }
    done = false;
    // Asked again next time. Work that is newer has come meanwhile, or none.
    Lock guard(users.mutex);
    if (Users* left = users.at(begin)) {
      left->events.push_back(std::move(use));
    }
  }
  if (failed != nullptr) {
    std::rethrow_exception(failed);
  }
  return done;
}

void forget_users(std::size_t begin) {
  Table& users = table();
  // Events go to their pool after the lock.
  decltype(users.pins)::node_type gone;
  Lock guard(users.mutex);
  gone = users.pins.extract(begin);
  users.count.store(users.pins.size(), std::memory_order_relaxed);
}

bool use_in_place(const void* address, CUDAStream stream) {
  Table& users = table();
  if (users.count.load(std::memory_order_relaxed) == 0) {
    return false;
  }
  const auto place = reinterpret_cast<std::size_t>(address);
  {
    Lock guard(users.mutex);
    if (users.at(place) == nullptr) {
      return false;
    }
  }
  cudaStreamCaptureStatus capture{};
  C10_CUDA_CHECK(cudaStreamIsCapturing(stream, &capture));
  if (capture != cudaStreamCaptureStatusNone) {
    // Nothing runs yet; a graph's memory is its owner's to keep.
    return true;
  }
  // Goes to its pool after the lock, if it is another's now.
  PooledEvent event = PooledEvent::record(stream);
  Lock guard(users.mutex);
  Users* used = users.at(place);
  if (used == nullptr) {
    return true;
  }
  for (auto& [of, last] : used->events) {
    if (of == stream) {
      std::swap(last, event);
      return true;
    }
  }
  used->events.emplace_back(stream, std::move(event));
  return true;
}

} // namespace pinbuddy
