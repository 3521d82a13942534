#!/usr/bin/env bash
# Random programs against stock, a million of them, others each time: docs/worst.md says what holds for each. A program
# that breaks a bound is shrunk, printed, and kept in rust-core/replay/tests/never_worse.regressions.
#
# usage: ci/never-worse.sh [COUNT]     (default: 1000000, about an hour on two cores)
# The settings of malloc keep it from giving memory back to the kernel after each program: that took most of the time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export MALLOC_TRIM_THRESHOLD_=4000000000 MALLOC_MMAP_THRESHOLD_=4000000000
PINBUDDY_PROGRAMS=${1:-1000000} cargo test --release --locked --package pinbuddy-replay --test never_worse -- --nocapture
