#!/usr/bin/env bash
# Explores for longer than a test can: a soak of an hour, a hundred million actions on the engine and as many on the
# provisioner, each audited; two minutes of each fuzz target and of each sanitizer; a hundred thousand interleavings of each
# program of threads; every call that fails in turn, and ten of them in client programs; a day in simulated time. Four hours on
# two cores.
#
# usage: ci/soak.sh [MINUTES]     (of the soak, default 60)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
minutes=${1:-60}
if [[ ! $minutes =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: ci/soak.sh [MINUTES]; MINUTES is a whole number, not ${1@Q}" >&2
  exit 2
fi
export PINBUDDY_INTERLEAVINGS=${PINBUDDY_INTERLEAVINGS:-100000}
ACTIONS=100000000 EACH=120 SOAK=$((minutes * 60)) \
    ci/explore.sh soak model fuzz shuttle faults clients tsan asan day
