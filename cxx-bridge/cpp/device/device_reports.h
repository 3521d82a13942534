// Planned device memory in PyTorch's reports: blocks of a plan count as blocks, and a region as reserved memory, once.
//
// To the allocator below a region is one block in use. Here that block is replaced with what lies in it. Knows no plan.
#pragma once

#include <c10/cuda/CUDACachingAllocator.h>

#include <cstddef>

#include "stream_memory.h"

namespace pinbuddy {

// The statistics of the allocator below, with this stream's blocks in place of its regions. Peaks are upper bounds: what
// the allocator below and the plan had at most may not have been at the same time.
void add_planned(c10::cuda::CUDACachingAllocator::DeviceStats& stats, StreamMemory& memory);

// The same for a snapshot's list of blocks.
void show_planned(c10::cuda::CUDACachingAllocator::SnapshotInfo& info, StreamMemory& memory);

// Tells a profiler and a tracer of a block.
void report_planned(
    c10::cuda::CUDACachingAllocator::CUDAAllocator& whole,
    void* address,
    std::size_t bytes,
    c10::DeviceIndex device);

} // namespace pinbuddy
