#!/usr/bin/env bash
# Explores for longer than a test can, for about an hour on two cores: a hundred million actions on the engine and as many
# on the provisioner, each audited; two minutes of each fuzz target; a hundred thousand interleavings of each program of
# threads, faults, a soak, sanitizers, and a day in simulated time.
#
# usage: ci/soak.sh [FILE]     (the table as JSON; default: target/soak.json)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PINBUDDY_INTERLEAVINGS=${PINBUDDY_INTERLEAVINGS:-100000}
cargo xtask check model fuzz shuttle faults soak tsan asan day --actions 100000000 --seconds 120 --json "${1:-target/soak.json}"
