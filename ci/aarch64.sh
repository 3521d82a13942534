#!/usr/bin/env bash
# Checks that the library's Rust and C++ compile for aarch64, for which nothing is run. Needs Debian's g++-aarch64-linux-gnu, and for
# the C++ the fork's environment, which it makes if need be.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=aarch64-unknown-linux-gnu
if ! command -v aarch64-linux-gnu-g++ >/dev/null; then
    echo "error: no aarch64-linux-gnu-g++; to get it: apt-get install g++-aarch64-linux-gnu" >&2
    exit 2
fi
rustup target add "$target"
export CXX_aarch64_unknown_linux_gnu=aarch64-linux-gnu-g++
cargo check --locked --target "$target" --target-dir target/aarch64 -p pinbuddy-bridge -p pinbuddy-tools -p xtask

# The build script compiles our C++. The headers are those of the wheel for x86-64: they ask the compiler for its machine. It
# links nothing, so torch's libraries are another machine's, and nobody waits for optimised code.
fork=$(cargo xtask venv)
torch=$("$fork/bin/python" -c 'import importlib.util as it; print(it.find_spec("torch").submodule_search_locations[0])')
cuda=$(cargo xtask venv --headers)
export PINBUDDY_TORCH_INCLUDE="$torch/include:$torch/include/torch/csrc/api/include" PINBUDDY_TORCH_LIB="$torch/lib"
export PINBUDDY_CUDA_INCLUDE="$cuda" PINBUDDY_FORK_VERSION=aarch64 CXXFLAGS_aarch64_unknown_linux_gnu=-O0
cargo check --locked --target "$target" --target-dir target/aarch64 -p pinbuddy-bridge --features torch
