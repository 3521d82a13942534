#include "host_runtime.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

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

StatsJson* stats_json() {
  static StatsJson* const function = named<StatsJson>("pinbuddy_sim_stats_json");
  return function;
}

// The number after `"name": `.
std::uint64_t field(const char* text, const char* name) {
  const std::string key = std::string("\"") + name + "\": ";
  const char* at = std::strstr(text, key.c_str());
  if (!at) {
    throw std::runtime_error(std::string("the simulator does not count ") + name);
  }
  return std::strtoull(at + key.size(), nullptr, 10);
}

} // namespace

void* pin(std::size_t bytes) {
  constexpr unsigned portable = 1;
  static auto* const allocate = required<int(void**, std::size_t, unsigned)>("cudaHostAlloc");
  void* memory = nullptr;
  return allocate(&memory, bytes, portable) == 0 ? memory : nullptr;
}

void unpin(void* memory) {
  static auto* const release = required<int(void*)>("cudaFreeHost");
  release(memory);
}

bool is_counted() {
  return stats_json() != nullptr;
}

Pinned counted() {
  char text[1 << 12];
  stats_json()(text, sizeof text);
  return {
      field(text, "pinned_bytes"),
      field(text, "pinned_peak_bytes"),
      field(text, "host_allocs") + field(text, "host_registers")};
}

} // namespace bench
