// What device_allocator.h declares, for releases that have no place for it: before torch 2.11.
#include "../upstream.h"
#include "device_allocator.h"
#include "pinbuddy-bridge/src/lib.rs.h"

#if !PINBUDDY_TORCH_FROM(11)

namespace pinbuddy {

void install_device_allocator() {
  if (device_planned() || device_records() || device_traces()) {
    device_absent("this release of torch is older than 2.11");
  }
}

bool device_initialised() {
  return false;
}

bool device_begun() {
  return false;
}

} // namespace pinbuddy

#endif
