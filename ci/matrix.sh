#!/usr/bin/env bash
# Builds, installs and tries in the simulator the releases at which the fork is most likely to break, or the last patch release of each
# minor one, one after the other: only one wheel and one environment need disk space at a time. A release that fails does not stop
# the others. The table is also in target/matrix.json.
#
# usage: ci/matrix.sh [--all | RELEASE...]     (default: the oldest, the newest, and 2.11.0, where the seam changes shape)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mapfile -t releases < <(ci/releases.sh)
if [[ ${1:-} == --all ]]; then
    # Of those with the same first two numbers the last.
    mapfile -t chosen < <(printf '%s\n' "${releases[@]}" | tac | awk -F. '!seen[$1 "." $2]++' | tac)
elif (($#)); then
    chosen=("$@")
else
    chosen=("${releases[0]}" 2.11.0 "${releases[-1]}")
fi

((${#chosen[@]})) || {
    echo "ci/releases.sh names no release" >&2
    exit 1
}
out=target/matrix
wheels=${XDG_CACHE_HOME:-$HOME/.cache}/pinbuddy/wheels
lines=() failed=()

# The stages of a release: each says its name before it begins.
stages() {
    echo builds >"$out/stage"
    cargo xtask build-wheel --torch "$1" --out "$out/dist"
    echo installs >"$out/stage"
    python3 -m venv "$out/environment"
    "$out/environment/bin/pip" install --quiet "$out"/dist/*.whl numpy pytest
    # Without the simulator, as on a machine with no GPU.
    echo imports >"$out/stage"
    "$out/environment/bin/python" -c 'import torch, pinbuddy; print(torch.__version__)'
    echo "smoke test" >"$out/stage"
    env -u PYTHONPATH cargo xtask sim -- "$PWD/$out/environment/bin/python" -m pytest --quiet -p no:cacheprovider \
        tests/python/test_{serving,reuse}.py tests/python/test_clear.py::test_every_way_of_clearing \
        tests/python/test_device_plan.py::test_the_second_run_is_served_from_one_region_and_counted_as_blocks
    echo whole >"$out/stage"
}

export PYTHONDONTWRITEBYTECODE=1
for release in "${chosen[@]}"; do
    echo "== torch $release"
    rm -rf "$out"
    mkdir -p "$out" "$wheels"
    before=$(ls "$wheels")
    SECONDS=0
    # In a shell of its own: bash ignores failures within a command whose status is asked for.
    export -f stages
    export out
    bash -euo pipefail -c 'stages "$1"' stages "$release" || failed+=("$release")
    lines+=("{\"torch\": \"$release\", \"reached\": \"$(cat "$out/stage")\", \"seconds\": $SECONDS}")
    # The official wheel goes, if it was not in the cache before.
    comm -13 <(echo "$before") <(ls "$wheels") | grep "^torch-$release" | sed "s|^|$wheels/|" | xargs --no-run-if-empty rm -f || true
    rm -rf "$out"
done
printf '%s\n' "${lines[@]}" | sed '1s/^/[/; $!s/$/,/; $s/$/]/' | tee target/matrix.json
if ((${#failed[@]})); then
    echo "failed, in the stage that is named: ${failed[*]}; again: ci/matrix.sh ${failed[*]}" >&2
    exit 1
fi
