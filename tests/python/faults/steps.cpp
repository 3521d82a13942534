// A program of the sweep that uses libtorch and no Python: steps, each of which may fail and leaves the others alone, and
// what is told at the end, are those of `programs.py` and `steps.py`.
#include <ATen/ATen.h>
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "../../stress/marked.h"

namespace {

constexpr double kMiB = 1 << 20;

// Of the simulator and, where it is loaded, of our library.
template <typename F>
F function(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
}

using Text = std::size_t (*)(char*, std::size_t);

// What a function writes that takes a buffer and says how much it needs.
std::string text_of(const char* name) {
  const auto write = function<Text>(name);
  if (write == nullptr) {
    return {};
  }
  std::string text(1 << 18, '\0');
  text.resize(std::min(write(text.data(), text.size()), text.size() - 1));
  return text;
}

std::string statistics() {
  return text_of("pinbuddy_sim_stats_json");
}

void fail_from_now_on(const char* plan) {
  if (function<int (*)(const char*)>("pinbuddy_sim_faults")(plan) != 0) {
    fail("the simulator does not take the faults", 0);
  }
}

std::string as_json(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') {
      quoted += '\\';
    }
    quoted += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
  }
  return quoted + '"';
}

// What no fault excuses.
struct Corrupt : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string type_of(const std::exception& error) {
  const char* name = typeid(error).name();
  char* plain = abi::__cxa_demangle(name, nullptr, nullptr, nullptr);
  const std::string type = plain != nullptr ? plain : name;
  std::free(plain);
  // Without namespaces, as Python names it.
  return type.substr(type.rfind(':') + 1);
}

// Members of two JSON objects: what came of each step, and the simulator's statistics at its end.
std::string came;
std::string reached;

template <typename F>
void step(const char* name, F&& part) {
  std::string said = "ok";
  try {
    part();
  } catch (const c10::Error& error) {
    said = type_of(error) + ": " + error.what_without_backtrace();
  } catch (const std::exception& error) {
    said = type_of(error) + ": " + error.what();
  }
  const char* comma = came.empty() ? "" : ", ";
  came += comma + as_json(name) + ": " + as_json(said.substr(0, said.find('\n')));
  reached += comma + as_json(name) + ": " + statistics();
}

// A pinned tensor that no copy has in flight.
at::Tensor pinned(double mib) {
  const auto bytes = static_cast<std::int64_t>(mib * kMiB);
  at::Tensor tensor = at::empty({bytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
  const auto in_flight = function<std::size_t (*)(void*, std::size_t)>("pinbuddy_sim_in_flight");
  if (in_flight(tensor.data_ptr(), bytes) != 0) {
    throw Corrupt("a block was handed out that a copy has in flight");
  }
  return tensor;
}

bool is_all(const at::Tensor& tensor, int mark) {
  return tensor.min().item<int>() == mark && tensor.max().item<int>() == mark;
}

// Tensors with content that must stay theirs.
struct Held {
  std::vector<std::pair<at::Tensor, int>> all;

  at::Tensor add(double mib) {
    const int mark = static_cast<int>(all.size()) % 250 + 1;
    all.emplace_back(pinned(mib).fill_(mark), mark);
    return all.back().first;
  }
  void check() const {
    for (const auto& [tensor, mark] : all) {
      if (!is_all(tensor, mark)) {
        throw Corrupt("a tensor lost its content");
      }
    }
  }
  void drop(std::size_t count) {
    check();
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size())));
  }
};

void synchronize() {
  const c10::impl::VirtualGuardImpl guard(at::kCUDA);
  guard.synchronizeDevice(0);
}

void at_rest() {
  synchronize();
  allocator->empty_cache();
}

at::Tensor there_and_back(const at::Tensor& tensor) {
  return tensor.to(at::kCUDA, /*non_blocking=*/true).cpu();
}

// Faults are over: what is left must work, and be accounted for.
void finish(Held& held) {
  const std::string calls = statistics();
  const std::string at_the_steps = reached;
  std::string audit = text_of("pinbuddy_audit");
  fail_from_now_on("");
  step("content", [&] { held.check(); });
  step("afterwards", [] {
    const at::Tensor kept = pinned(3).fill_(7), small = pinned(0.1).fill_(8);
    if (!is_all(there_and_back(kept), 7) || !is_all(small, 8)) {
      throw Corrupt("a copy that was made afterwards is wrong");
    }
  });
  held.all.clear();
  step("at rest", at_rest);
  if (audit.empty()) {
    audit = text_of("pinbuddy_audit");
  }
  std::printf(
      "{\"steps\": {%s}, \"reached\": {%s}, \"before\": %s, \"left\": %s, \"audit\": %s, \"known\": %lld}\n",
      came.c_str(),
      at_the_steps.c_str(),
      calls.c_str(),
      statistics().c_str(),
      as_json(audit).c_str(),
      static_cast<long long>(counts_of(allocator->get_stats()).pinned_bytes.current));
}

} // namespace

int main() {
  const char* plan = std::getenv("PINBUDDY_SIM_FAULT_PLAN");
  fail_from_now_on(plan != nullptr ? plan : "");
  allocator = at::getHostAllocator(at::kCUDA);
  Held held;
  step("large", [&] { held.add(4); });
  step("small", [&] {
    for (const double size : {0.25, 0.1, 0.5}) {
      held.add(size);
    }
  });
  step("longer than a block", [&] { held.add(20); });
  step("copy", [&] {
    const at::Tensor back = there_and_back(held.add(2));
    if (back.min().item<int>() != back.max().item<int>()) {
      throw Corrupt("a copy is wrong");
    }
  });
  step("drop", [&] { held.drop(4); });
  step("again", [&] { held.add(4); });
  step("clear", [] { allocator->empty_cache(); });
  step("after it", [&] { held.add(5); });
  step("statistics", [] { allocator->get_stats(); });
  finish(held);
  return 0;
}
