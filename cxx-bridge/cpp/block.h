// A block that either the engine or upstream's lists hold.
//
// One type for both, so that a context pointer can be told apart by looking at it and upstream's
// record_event, events and segment list keep working on it.
#pragma once

#include <ATen/core/CachingHostAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include "pinbuddy-bridge/src/lib.rs.h"

namespace pinbuddy {

struct Block : at::HostBlock<c10::cuda::CUDAStream> {
  using at::HostBlock<c10::cuda::CUDAStream>::HostBlock;

  // Whether the engine owns the memory, and then where. Both are set before the block is handed
  // out and stay until it is wholly free.
  bool engine_owned = false;
  Grant grant{};

  // Whether the table finds it; the table's lock guards it.
  bool handed_out = false;
};

} // namespace pinbuddy
