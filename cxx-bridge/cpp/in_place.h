// Storages whose memory is pinned where it is: a pin ends with its storage, once the streams that use it are done.
//
// A pin's storage has its memory from a holder of ours, which ends the pin before the memory goes. Shared memory keeps its
// type, by which PyTorch finds the file to send to other processes. Knows no pages. Invariant: in a child of a fork memory is
// given back as without a pin.
#pragma once

#include <c10/cuda/CUDAStream.h>

#include <cstddef>
#include <cstdint>

#include "rust/cxx.h"

namespace pinbuddy {

// Of the bridge.
struct Memory;

// The memory of the storage at this address; `shared`: PyTorch says that other processes may have it. Throws c10::Error where
// it cannot be pinned in place.
Memory memory_of_storage(std::size_t storage, bool shared);

// The pin of a storage; 0 if it has none.
std::uint64_t pin_of_storage(std::size_t storage);

// From now on the pin of this memory ends with the storage. Throws c10::Error if it has a pin already.
void watch_storage(std::size_t storage, std::uint64_t pin, std::size_t address, std::size_t bytes);

// The pin does not end with the storage.
void unwatch_storage(std::size_t storage);

// As `register_piece`; read-only where the driver has that.
void register_in_place(std::size_t address, std::size_t bytes, bool read_only);
void unregister_in_place(std::size_t address);

// Throws c10::Error where one copy may not read from both sides of this address.
void copy_across(std::size_t address);

// Waits for the work that uses these pins. Throws nothing.
void wait_for_users(rust::Slice<const std::uint64_t> pins);
void forget_users(std::uint64_t pin);

// The work of `stream` so far uses memory at `address`: true if it is pinned in place. Throws c10::Error.
bool use_in_place(const void* address, c10::cuda::CUDAStream stream);

} // namespace pinbuddy
