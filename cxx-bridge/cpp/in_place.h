// Storages whose memory is pinned where it is: a pin ends before its memory goes, once the streams that use it are done.
//
// A pin's storage has its memory from a holder of ours, which ends the pin first. Shared memory keeps its type, by which
// PyTorch finds the file to send to other processes. Knows no pages. Invariants: memory whose pin could not end is never given
// back; in a child of a fork memory is given back as without a pin. All functions throw c10::Error.
#pragma once

#include <c10/cuda/CUDAStream.h>

#include <cstddef>
#include <cstdint>

namespace pinbuddy {

// Of the bridge.
struct Memory;

// The memory of the storage at this address; `shared`: PyTorch says that other processes may have it. Throws where it cannot
// be pinned in place.
Memory memory_of_storage(std::size_t storage, bool shared);

// The last pin of a storage's memory, which may have ended; 0 if it had none.
std::uint64_t pin_of_storage(std::size_t storage);

// From now on this pin of `pages` ends before the storage's memory goes, and the streams that use them are known. Throws if the
// storage has other memory than that at `address`.
void watch_storage(std::size_t storage, std::uint64_t pin, std::size_t address, const Memory& pages);

// As `register_piece`; read-only where the driver has that.
void register_in_place(const Memory& pages, bool read_only);
void unregister_in_place(const Memory& pages);

// Whether the streams are done with the pin that begins at this address.
bool users_are_done(std::size_t begin);
void forget_users(std::size_t begin);

// The work of `stream` so far uses memory at `address`: true if it is pinned in place.
bool use_in_place(const void* address, c10::cuda::CUDAStream stream);

} // namespace pinbuddy
