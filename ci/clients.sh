#!/usr/bin/env bash
# Runs client programs with stock, the fork and the plug-in, and compares what they can observe: docs/clients.md.
# Libraries are fetched once.
#
# usage: ci/clients.sh [FILE]     (default: target/clients.json; ten minutes or so on two cores)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p target
cargo xtask test-clients --json "${1:-target/clients.json}"
