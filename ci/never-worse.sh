#!/usr/bin/env bash
# Compares a million random programs with stock, others each time: docs/worst.md has the bounds. A program that
# breaks one is shrunk, printed, and saved in rust-core/replay/tests/never_worse.regressions.
#
# usage: ci/never-worse.sh [COUNT]     (default: 1000000, about an hour on two cores)
# malloc's settings keep it from returning memory to the kernel after each program, which took most of the time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export MALLOC_TRIM_THRESHOLD_=4000000000 MALLOC_MMAP_THRESHOLD_=4000000000
PINBUDDY_PROGRAMS=${1:-1000000} cargo test --release --locked --package pinbuddy-replay --test all -- never_worse:: --skip device_ --nocapture
