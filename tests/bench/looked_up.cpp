#include "looked_up.h"

#include <ATen/Context.h>
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace bench {
namespace {

template <typename F>
F* named(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

template <typename F>
F* required(const char* name) {
  F* found = named<F>(name);
  if (!found) {
    throw std::runtime_error(std::string(name) + " is in no library that libtorch loads");
  }
  return found;
}

using StatsJson = std::size_t(char*, std::size_t);

// The fork's statistics as JSON; empty with another libtorch.
const char* statistics() {
  static auto* const stats = named<StatsJson>("pinbuddy_stats_json");
  if (!stats) {
    return "";
  }
  static std::vector<char> text(1 << 16);
  const std::size_t length = stats(text.data(), text.size());
  if (length >= text.size()) {
    text.resize(2 * length);
    return statistics();
  }
  return text.data();
}

// The number behind a name in JSON.
double field(const std::string& text, const std::string& name) {
  const std::string key = '"' + name + "\":";
  const std::size_t at = text.find(key);
  if (at == std::string::npos) {
    throw std::runtime_error("the statistics have no " + name);
  }
  return std::strtod(text.c_str() + at + key.size(), nullptr);
}

} // namespace

bool is_counted() {
  static const bool counts = named<StatsJson>("pinbuddy_sim_stats_json") != nullptr;
  return counts;
}

Pinned counted() {
  static auto* const stats = required<StatsJson>("pinbuddy_sim_stats_json");
  char text[1 << 12];
  stats(text, sizeof text);
  return {
      field(text, "pinned_bytes"),
      field(text, "pinned_peak_bytes"),
      field(text, "host_allocs") + field(text, "host_registers")};
}

void warm_up() {
  required<int(int)>("pinbuddy_warm_up")(1);
}

void wait_for_warm_up() {
  while (std::strstr(statistics(), "\"phase\":\"running\"")) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

double plan_count(const char* name) {
  const char* plan = std::strstr(statistics(), "\"plan\":{");
  return plan ? field({plan, std::strchr(plan, '}')}, name) : 0;
}

c10::Allocator* device_allocator() {
  at::globalContext().lazyInitDevice(c10::kCUDA);
  // `c10::cuda::CUDACachingAllocator::allocator`, whose header needs CUDA's. An allocator of CUDA's begins with its base.
  static auto* const current =
      required<std::atomic<c10::Allocator*>>("_ZN3c104cuda20CUDACachingAllocator9allocatorE");
  return current->load();
}

} // namespace bench
