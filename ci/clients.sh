#!/usr/bin/env bash
# Client programs of users' and of libraries', with stock, with the fork and with the plug-in, and all that they can see
# compared: docs/clients.md says what. Libraries are fetched once.
#
# usage: ci/clients.sh [FILE]     (default: target/clients.json; ten minutes or so on two cores)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p target
cargo xtask test-clients --json "${1:-target/clients.json}"
