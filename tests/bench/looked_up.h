// What this program looks up at run time, so that it runs with either libtorch and either runtime: the simulator's counts,
// pinbuddy's C interface, and the allocator of device memory.
#pragma once

#include <c10/core/Allocator.h>

namespace bench {

// Page-locked memory of this process.
struct Pinned {
  double bytes = 0;
  double peak = 0;
  double pins = 0; // calls that pinned
};

// Whether the runtime is simulated; it counts every pin.
bool is_counted();
// The simulator's counts. Throws where nothing is counted.
Pinned counted();

// Warms up, and waits for it. Throws without pinbuddy.
void warm_up();
// Waits for the end of a running warm-up, and starts none. Does nothing without pinbuddy.
void wait_for_warm_up();
// A count of `stats()["plan"]`; 0 where no plan has slots.
double plan_count(const char* name);

// The allocator of device memory, which tensors ask.
c10::Allocator* device_allocator();

} // namespace bench
