// Planned device memory in PyTorch's reports: blocks of a plan count as blocks, and a region as reserved memory, once.
//
// To the allocator below a region is one block in use. Here that block is replaced with what lies in it. Knows no plan.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "stream_memory.h"

namespace pinbuddy {

// In the order of src/device/tally.rs.
using Planned = std::array<Counter, 10>;

// The statistics of the allocator below, with the blocks of a device's streams in place of their regions. Peaks of counts are upper
// bounds: what the allocator below and each stream had at most may not have been at the same time. Peaks of bytes are those since
// the peaks were kept (src/device/tally.rs).
void add_planned(c10::cuda::CUDACachingAllocator::DeviceStats& stats, const Planned& planned);

// The same as `add_planned` for a snapshot's list of blocks, with what the history knows of who asked for them.
void show_planned(
    c10::cuda::CUDACachingAllocator::SnapshotInfo& info,
    StreamMemory& memory,
    DeviceHistory& history);

} // namespace pinbuddy
