#!/usr/bin/env bash
# Checks that the library's Rust and C++ compile for aarch64, for which nothing is run. Needs Debian's g++-aarch64-linux-gnu.
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
