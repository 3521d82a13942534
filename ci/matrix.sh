#!/usr/bin/env bash
# Builds, installs and tries in the simulator the releases at which the fork is most likely to break, or all of
# them. The table is also in target/matrix.json.
#
# usage: ci/matrix.sh [--all]     (default: the oldest, the newest, and 2.11.0, where the seam changes shape)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

chosen=()
if [[ ${1:-} != --all ]]; then
    mapfile -t releases < <(ci/releases.sh)
    chosen=(--torch "${releases[0]}" --torch 2.11.0 --torch "${releases[-1]}")
fi
mkdir -p target
cargo xtask matrix --json target/matrix.json "${chosen[@]}"
