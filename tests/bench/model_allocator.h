// The model of #181094 as an at::HostAllocator.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

namespace bench {

// Requests below `threshold` bytes, and those that no segment holds, are upstream's; so `upstream`
// must be the stock allocator. Lives as long as the process.
at::HostAllocator* make_model(at::HostAllocator* upstream, std::size_t threshold);

} // namespace bench
