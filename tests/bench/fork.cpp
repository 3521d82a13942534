#include "fork.h"

#include <dlfcn.h>

#include <chrono>
#include <cstddef>
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

// The fork's statistics as JSON; empty with another libtorch.
const char* statistics() {
  static auto* const stats = named<std::size_t(char*, std::size_t)>("pinbuddy_stats_json");
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

bool is_warming_up() {
  return std::strstr(statistics(), "\"phase\":\"running\"") != nullptr;
}

} // namespace

void warm_up() {
  auto* const function = named<int(int)>("pinbuddy_warm_up");
  if (!function) {
    throw std::runtime_error("this libtorch has no pinbuddy");
  }
  function(1);
}

double plan_count(const char* name) {
  const char* plan = std::strstr(statistics(), "\"plan\":{");
  if (!plan) {
    return 0;
  }
  const std::string key = std::string("\"") + name + "\":";
  const char* at = std::strstr(plan, key.c_str());
  if (!at || at > std::strchr(plan, '}')) {
    throw std::runtime_error("the statistics of a plan have no " + key);
  }
  return std::strtod(at + key.size(), nullptr);
}

void wait_for_warm_up() {
  while (is_warming_up()) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

} // namespace bench
