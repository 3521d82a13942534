#!/usr/bin/env bash
# Lists the fork wheels of a release: each supported torch with each Python that has an official wheel, as JSON on
# standard output, and as the output `include` of a workflow's step.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pythons=(3.10 3.11 3.12 3.13 3.14 3.15)
mapfile -t releases < <(ci/releases.sh)
include=()
for python in "${pythons[@]}"; do
    published=$(python3 -m pip index versions torch --only-binary=:all: --python-version "$python" \
        --implementation cp --abi "cp${python/./}" --platform manylinux_2_28_x86_64 2>/dev/null |
        sed -n 's/^Available versions: //p' | tr -d ' ')
    for release in "${releases[@]}"; do
        if [[ ,$published, == *,$release,* ]]; then
            include+=("{\"torch\":\"$release\",\"python\":\"$python\"}")
        fi
    done
done
if ((${#include[@]} == 0)); then
    echo "release-plan: the index names no official wheel of ${releases[*]}" >&2
    exit 1
fi
json="[$(
    IFS=,
    echo "${include[*]}"
)]"
echo "$json"
if [[ -n ${GITHUB_OUTPUT:-} ]]; then
    echo "include=$json" >>"$GITHUB_OUTPUT"
fi
