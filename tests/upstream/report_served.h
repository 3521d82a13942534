// Included before PyTorch's unchanged C++ test: prints at the end how many requests the engine served. Prints
// nothing with the official wheel.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <string>

namespace pinbuddy_report {

struct AtExit {
  ~AtExit() {
    using StatsJson = std::size_t (*)(char*, std::size_t);
    auto* stats_json = reinterpret_cast<StatsJson>(dlsym(RTLD_DEFAULT, "pinbuddy_stats_json"));
    if (stats_json == nullptr) {
      return;
    }
    std::string text(stats_json(nullptr, 0) + 1, '\0');
    stats_json(text.data(), text.size());
    std::printf("pinbuddy stats: %s\n", text.c_str());
  }
};

inline AtExit at_exit;

} // namespace pinbuddy_report
