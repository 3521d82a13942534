// What a soak asks of the process and of the library beside the allocator.
#pragma once

#include "soak_copies.h"

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

// Kilobytes of /proc/self/status.
inline std::size_t resident_kb() {
  std::size_t kb = 0;
  char line[256];
  std::FILE* status = std::fopen("/proc/self/status", "r");
  while (status != nullptr && std::fgets(line, sizeof line, status) != nullptr) {
    std::sscanf(line, "VmRSS: %zu kB", &kb);
  }
  if (status != nullptr) {
    std::fclose(status);
  }
  return kb;
}

// What the worker has filled and not registered yet, or not unmapped again, is resident, and in no statistic: so the end of
// an epoch waits for it. Whether there was one.
inline bool wait_for_the_worker() {
  using Clock = std::chrono::steady_clock;
  const auto stats = function<std::size_t (*)(char*, std::size_t)>("pinbuddy_stats_json");
  std::string text(1 << 20, '\0');
  const auto late = Clock::now() + std::chrono::minutes(5);
  for (bool at_work = false; stats != nullptr; at_work = true) {
    stats(text.data(), text.size());
    if (std::strstr(text.c_str(), "\"phase\":\"running\"") == nullptr) {
      return at_work;
    }
    if (Clock::now() > late) {
      fail("the worker does not end", 0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

// Waits until the device has done its work, and its events are seen to be complete (PINBUDDY_SIM_EVENT_LAG_MS).
inline void wait_for_the_device() {
  const c10::impl::VirtualGuardImpl cuda(c10::kCUDA);
  cuda.synchronizeDevice(cuda.getDevice().index());
  const char* lag = std::getenv("PINBUDDY_SIM_EVENT_LAG_MS");
  std::this_thread::sleep_for(std::chrono::milliseconds(lag == nullptr ? 0 : std::atoi(lag) + 1));
}
