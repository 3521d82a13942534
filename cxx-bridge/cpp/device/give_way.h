// How plans give way to a request for which the allocator below has no room.
//
// In three steps, until the request is served: regions in which nothing lies are given back, with the plans in force; the request
// gets a place that is idle in a region of its own stream; the plans of the device are dropped. A region that holds a block
// cannot be given back in part: it is one block of the allocator below. Invariant: observers and statistics learn of the last try's
// failure alone.
#pragma once

#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "failures.h"
#include "pinbuddy-bridge/src/lib.rs.h"
#include "streams.h"

namespace pinbuddy {

// The error's text, which the allocator below has written, calls a region allocated, whatever lies in it.
inline void tell_idle(c10::OutOfMemoryError& error, c10::DeviceIndex device, std::string before = {}) {
  if (const std::size_t idle = device_idle(device); idle > 0) {
    before += before.empty() ? "" : "; ";
    before += "of what is allocated by PyTorch " + std::to_string(idle >> 20) +
        " MiB are idle in regions of this device's plan";
  }
  if (!before.empty()) {
    error.add_context("pinbuddy: " + before);
  }
}

// What `allocate` returns, which failed once for `bytes` bytes of the current device; or `borrow`, which finds what is idle in a
// region, or null. `all` has regions, or had some before another thread gave them back; `before`: how many moves there were
// when it was tried. `releases`: the allocator below gives back its cache where there is no room.
template <class Allocate, class Borrow>
[[gnu::noinline]] std::invoke_result_t<Allocate> as_plans_give_way(
    Streams& all,
    std::uint64_t before,
    bool releases,
    std::size_t bytes,
    Allocate allocate,
    Borrow borrow) {
  const c10::DeviceIndex device = c10::cuda::current_device();
  const Tally& tally = device_tally(device);
  tally.forgive(Failures::counted(releases));
  const bool gave = all.give_way(GiveBack::Short);
  if (gave) {
    device_gave_back(device, bytes);
  }
  if (gave || device_moved_since(before)) {
    Failures::forget();
    try {
      return allocate();
    } catch (c10::OutOfMemoryError& error) {
      if (!device_reserved(device)) {
        Failures::tell();
        error.add_context("pinbuddy: before that the memory of this device's plan, which was idle, was given back");
        throw;
      }
    }
    tally.forgive(Failures::counted(releases));
  }
  Failures::forget();
  if (std::invoke_result_t<Allocate> idle = borrow()) {
    device_borrowed(device, bytes);
    return idle;
  }
  const bool drops = all.give_way(GiveBack::ForGood);
  Failures::forget();
  if (drops) {
    device_dropped(device, bytes);
  }
  const Setting last(Failures::is_last, true);
  try {
    return allocate();
  } catch (c10::OutOfMemoryError& error) {
    Failures::tell();
    tell_idle(error, device, drops ? "before that the plan of this device was dropped, and its idle memory given back" : "");
    throw;
  }
}

} // namespace pinbuddy
