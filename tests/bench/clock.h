// Clocks: a thread's processor time, the wall's, and the processor's own ticks for single calls.
#pragma once

#include <cstdint>

namespace bench {

// Nothing here waits, so this excludes other programs.
double thread_nanoseconds();
double wall_nanoseconds();

// The time stamp counter, read in order with what is before and after it.
using Ticks = std::uint64_t;
Ticks ticks_now();
// The cost of a reading: the median difference of consecutive ones.
Ticks ticks_of_asking();
double in_nanoseconds(Ticks ticks);
// Reads the counter so many times, out of order.
void read_counter(long times);

} // namespace bench
