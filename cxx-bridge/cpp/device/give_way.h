// How plans give way to a request for which the allocator below has no room.
//
// In two steps, and after each the request is tried again: regions in which nothing lies are given back, with the plans in
// force; if that is not enough, the plans of the device are dropped. A region that holds a block cannot be given back in part: it
// is one block of the allocator below. Invariant: observers and statistics learn of the last try's failure alone.
#pragma once

#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <type_traits>

#include "failures.h"
#include "pinbuddy-bridge/src/lib.rs.h"
#include "streams.h"

namespace pinbuddy {

// What `allocate` returns, which failed once for `bytes` bytes of the current device. `all` has regions. During `captures` no
// event may be asked for, and the allocator below keeps its cache.
template <class Allocate>
[[gnu::noinline]] std::invoke_result_t<Allocate> as_plans_give_way(
    Streams& all,
    bool captures,
    std::size_t bytes,
    Allocate allocate) {
  const c10::DeviceIndex device = c10::cuda::current_device();
  if (all.give_back(StreamMemory::GiveBack::kShort, /*settling=*/!captures)) {
    all.forgive(/*flushed=*/!captures);
    device_gave_back(device, bytes);
    const Failures::TryingAgain again(Failures::Attempt::kAnother);
    try {
      return allocate();
    } catch (c10::OutOfMemoryError& error) {
      if (!all.reserved()) {
        Failures::tell();
        error.add_context("pinbuddy: before that the memory of this device's plan, which was idle, was given back");
        throw;
      }
    }
  }
  all.give_back(StreamMemory::GiveBack::kForGood, /*settling=*/!captures);
  all.forgive(/*flushed=*/!captures);
  device_dropped(device, bytes);
  const Failures::TryingAgain again(Failures::Attempt::kLast);
  try {
    return allocate();
  } catch (c10::OutOfMemoryError& error) {
    error.add_context("pinbuddy: before that the plan of this device was dropped, and its idle memory given back");
    throw;
  }
}

} // namespace pinbuddy
