// The calling thread waits for the driver, as long as this lives; a recording is told. A hit never comes by.
#pragma once

#include "pinbuddy-bridge/src/lib.rs.h"

namespace pinbuddy {

class DriverWait {
 public:
  explicit DriverWait(bool in_request) {
    wait_begins(in_request);
  }
  ~DriverWait() {
    wait_ends();
  }
  DriverWait(const DriverWait&) = delete;
  DriverWait& operator=(const DriverWait&) = delete;
};

} // namespace pinbuddy
