// Storages whose memory is pinned where it is: its pin ends before the memory goes.
//
// A pinned storage has its memory from a holder of ours, which asks Rust first. The pin goes with the memory: to another storage
// by a swap, and it ends where the storage gets other memory. Shared memory keeps its type, by which PyTorch finds its file. Knows
// no pages. All but `let_go` throw c10::Error.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pinbuddy {

// Of the bridge.
struct Place;

// The memory of the storage at this address, and its last pin, which may have ended; 0 if it had none. `shared`: PyTorch says that
// other processes may have it.
Place memory_of_storage(std::size_t storage, bool shared, std::uint64_t& pin);

// From now on `engine_storage_dies` is asked before the memory is given back, which must still be at `address`.
void hold_storage(std::size_t storage, std::uint64_t pin, std::size_t address);

// Gives memory back that could not go when its storage did.
void let_go(std::size_t owner);

// Has PyTorch's history say that memory at this address is pinned, or, without bytes, that it is not any more: from torch 2.15 on.
void note_in_place(std::size_t address, std::size_t bytes);

// Waits for all work of all devices that have a context. False, at once, where that would break a capture off.
bool finish_devices();

} // namespace pinbuddy
