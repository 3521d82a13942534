// Which calls fail in a soak, where the simulated runtime is in front: one kind in an epoch, some calls of it, drawn anew.
// Those of PINBUDDY_SIM_FAULTS fail besides.
#pragma once

#include "soak_copies.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>

// A number of the simulator's statistics by its name; 0 without a simulator.
inline std::uint64_t simulated(const char* name) {
  const auto stats = function<std::size_t (*)(char*, std::size_t)>("pinbuddy_sim_stats_json");
  if (stats == nullptr) {
    return 0;
  }
  std::string text(64 << 10, '\0');
  stats(text.data(), text.size());
  const std::string key = "\"" + std::string(name) + "\":";
  const char* found = std::strstr(text.c_str(), key.c_str());
  return found == nullptr ? 0 : std::strtoull(found + key.size(), nullptr, 10);
}

// Calls of a name fail with this error: so many, drawn from the first ones, most of them early: an epoch may make few calls.
struct Failing {
  const char* call;
  int error;
  std::size_t count;
  std::size_t among;
};

struct FaultKind {
  std::vector<Failing> some;
  // Until the epoch has ended, whichever those are.
  const char* always;
};

// An event's creation is not among them: after it a block is never used again, as with stock.
inline const FaultKind kFaults[] = {
    {{{"cudaHostAlloc", 2, 16, 200}}, ""},
    {{{"cudaHostUnregister", 999, 8, 16}, {"cudaFreeHost", 999, 16, 100}}, ""},
    {{{"mmap", 12, 8, 24}, {"madvise", 12, 8, 48}}, ""},
    // CUDA must not allocate instead, or it would allocate all blocks for the rest of the process.
    {{{"cudaHostRegister", 2, 8, 16}}, "cudaHostAlloc:1+=2"},
};

// Every second epoch has faults, of one kind after the other.
class Faults {
 public:
  explicit Faults(std::uint64_t seed) : random_(seed) {}

  void choose(std::size_t epoch) {
    kind_ = epoch % 2 == 1 && simulated_ != nullptr ? &kFaults[epoch / 2 % std::size(kFaults)] : nullptr;
  }

  // Calls fail from now on.
  void begin() {
    std::string plan;
    drawn_.clear();
    for (std::size_t i = 0; kind_ != nullptr && i < kind_->some.size(); ++i) {
      const Failing& it = kind_->some[i];
      for (std::size_t j = 0; j < it.count; ++j) {
        const auto number = static_cast<std::size_t>(
            std::exp2(std::uniform_real_distribution<>(0, std::log2(it.among))(random_)));
        drawn_[it.call].insert(number);
        plan += ";" + std::string(it.call) + ":" + std::to_string(number) + "=" + std::to_string(it.error);
      }
    }
    arm(plan);
  }

  // Only those that always fail do so from now on.
  void end_of_some() {
    epoch_failed_ = 0;
    for (const auto& [call, numbers] : drawn_) {
      const std::uint64_t made = simulated(call.c_str());
      const auto failed = static_cast<std::uint64_t>(
          std::distance(numbers.begin(), numbers.upper_bound(made)));
      failed_[call] += failed;
      epoch_failed_ += failed;
    }
    epochs_ += epoch_failed_ != 0;
    arm("");
  }

  // No call fails any more. How many did in this epoch, of those that were drawn.
  std::uint64_t end() {
    kind_ = nullptr;
    arm("");
    return epoch_failed_;
  }

  std::uint64_t epochs() const {
    return epochs_;
  }
  // By the call's name; all names, so that none goes missing unseen.
  std::map<std::string, std::uint64_t> failed() const {
    auto all = failed_;
    for (const FaultKind& kind : kFaults) {
      for (const Failing& it : kind.some) {
        all[it.call];
      }
    }
    return all;
  }

 private:
  void arm(const std::string& plan) {
    if (simulated_ == nullptr) {
      return;
    }
    const char* given = std::getenv("PINBUDDY_SIM_FAULTS");
    const char* always = kind_ == nullptr ? "" : kind_->always;
    const std::string all = std::string(given == nullptr ? "" : given) + plan + ";" + always;
    if (simulated_(all.c_str()) != 0) {
      fail("the simulator takes no faults", 0);
    }
  }

  int (*simulated_)(const char*) = function<int (*)(const char*)>("pinbuddy_sim_faults");
  std::mt19937_64 random_;
  const FaultKind* kind_ = nullptr;
  std::map<std::string, std::set<std::size_t>> drawn_;
  std::map<std::string, std::uint64_t> failed_;
  std::uint64_t epoch_failed_ = 0;
  std::uint64_t epochs_ = 0;
};
