// pinbuddy's C interface, asked for by name: the same program runs without it, too.
#pragma once

namespace bench {

// Pins what the settings say ahead of requests, and waits for it. Throws where there is no pinbuddy.
void warm_up();

// Waits until no warm-up goes on; nothing to do without pinbuddy. Starts none.
void wait_for_warm_up();

} // namespace bench
