#!/usr/bin/env bash
# Reports where the lines that the newest series relies on are in upstream's main. Never fails because of them.
#
# usage: ci/drift.sh [REF]     (default: main)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ref=${1:-main}
tree=target/pytorch-$ref out=target/drift
mkdir -p "$out"
ci/upstream-checkout.sh "$ref" "$tree" /version.txt /aten/src/ATen/core/ /c10/core/
cargo xtask patch drift --source "$tree" | tee "$out/drift.txt"
if [[ -n ${GITHUB_STEP_SUMMARY:-} ]]; then
    {
        echo '```'
        cat "$out/drift.txt"
        echo '```'
    } >>"$GITHUB_STEP_SUMMARY"
fi
