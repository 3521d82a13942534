// In front of PyTorch's device allocator: planned requests have their places, everything else is PyTorch's.
//
// Put in place when the library is loaded, or by pinbuddy.device.enable, and only if a plan is used or made or a trace recorded. Where a request is not planned, or memory is
// asked for a pool, in a capture or below the threshold, the allocator below is asked as if nothing were in front of it.
//
// Invariants: every pointer that is handed out has this allocator's deleter, which is the one that raw_deleter() names;
// what a plan says decides where a block lies, and never whether it is safe there.
#pragma once

namespace pinbuddy {

// Puts it in front, if that is asked for. Called when the library is loaded, and before CUDA is initialised.
void install_device_allocator();

// Whether PyTorch's allocator of device memory is initialised.
bool device_initialised();

// Whether the allocator is initialised. Takes no lock.
bool device_begun();

} // namespace pinbuddy
