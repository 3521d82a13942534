#include "fork.h"

#include <dlfcn.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

namespace bench {
namespace {

template <typename F>
F* named(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

bool is_warming_up() {
  static auto* const stats = named<std::size_t(char*, std::size_t)>("pinbuddy_stats_json");
  if (!stats) {
    return false;
  }
  static std::vector<char> text(1 << 16);
  const std::size_t length = stats(text.data(), text.size());
  if (length >= text.size()) {
    text.resize(2 * length);
    return is_warming_up();
  }
  return std::strstr(text.data(), "\"phase\":\"running\"") != nullptr;
}

} // namespace

void warm_up() {
  auto* const function = named<int(int)>("pinbuddy_warm_up");
  if (!function) {
    throw std::runtime_error("this libtorch has no pinbuddy");
  }
  function(1);
}

void wait_for_warm_up() {
  while (is_warming_up()) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

} // namespace bench
