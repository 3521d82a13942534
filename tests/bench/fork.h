// pinbuddy's C interface, looked up at run time, so that the same program also runs without it.
#pragma once

namespace bench {

// Warms up, and waits for it. Throws without pinbuddy.
void warm_up();

// A count of `stats()["plan"]`; 0 where no plan has slots.
double plan_count(const char* name);

// Waits for the end of a running warm-up, and starts none. Does nothing without pinbuddy.
void wait_for_warm_up();

} // namespace bench
