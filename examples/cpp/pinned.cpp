// Pinned memory from pinbuddy in a program that uses libtorch and no Python.
//
//     g++ -std=c++20 pinned.cpp -I$TORCH/include -I$TORCH/include/torch/csrc/api/include \
//         -L$TORCH/lib -Wl,--no-as-needed -ltorch -ltorch_cuda -ltorch_cpu -lc10 -Wl,-rpath,$TORCH/lib -o pinned
//     ./pinned "$(python -m pinbuddy library --torch $TORCH)"
//
// The library has to be of the very release that the program uses: `python -m pinbuddy library` compares
// versions and headers, dlopen does not. With a fork's libtorch no argument is needed.
#include <ATen/ATen.h>
#include <dlfcn.h>

#include <cstdio>
#include <string>

// What pinbuddy.h declares; found by name, so that the program runs without the library, too.
using Enabled = int (*)();
using Json = std::size_t (*)(char*, std::size_t);

int main(int count, char** arguments) {
  // Before the first pinned tensor: by being loaded it takes over. Never closed again.
  if (count > 1 && dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const auto options = at::TensorOptions().dtype(at::kByte).pinned_memory(true);
  const at::Tensor host = at::empty({64 << 20}, options);
  host.fill_(42);
  const at::Tensor back = host.to(at::kCUDA, /*non_blocking=*/true).to(at::kCPU);
  if (!host.is_pinned() || !at::equal(host, back)) {
    std::fprintf(stderr, "the data did not come back as they went\n");
    return 1;
  }
  const auto enabled = reinterpret_cast<Enabled>(dlsym(RTLD_DEFAULT, "pinbuddy_enabled"));
  const auto stats = reinterpret_cast<Json>(dlsym(RTLD_DEFAULT, "pinbuddy_stats_json"));
  if (enabled == nullptr || stats == nullptr || enabled() == 0) {
    std::puts("served by PyTorch's own allocator");
    return 0;
  }
  std::string text(stats(nullptr, 0) + 1, '\0');
  text.resize(stats(text.data(), text.size()));
  std::printf("served by pinbuddy: %s\n", text.c_str());
  return 0;
}
