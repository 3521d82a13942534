#!/usr/bin/env bash
# What only a real GPU can show: PyTorch's own allocator tests and ours with the fork and with stock, and the
# benchmark with its targets. Continues after failures; the results are in target/gpu.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(ci/releases.sh | tail -1)
out=target/gpu tree=target/pytorch-v$version
mkdir -p "$out"
failed=()

# Runs a command, copies its output to a file, and remembers a failure.
step() {
    local name=$1
    shift
    echo "== $name"
    if ! "$@" 2>&1 | tee "$out/$name.txt"; then
        failed+=("$name")
    fi
}

# Without a driver and a GPU the rest is meaningless.
cargo pinbuddy doctor --json >"$out/doctor.json" || true
env -u PINBUDDY_SIM_DEVICES cargo pinbuddy doctor
ci/upstream-checkout.sh "v$version" "$tree" /version.txt '/test/*.py' /aten/src/ATen/test/
step tests cargo xtask test --real --source "$tree"
# The rest of docs/gpu.md, about seven minutes; PyTorch's tests and ours have already run. Named is what is left out, so that no
# stage is forgotten.
step programs ci/gpu/programs.sh "$version" "$out/programs" --source "$tree"
step gpu ci/gpu/run.sh --strict --without "our tests,PyTorch C++,PyTorch Python" \
    --stock "$(cargo xtask venv --stock)/bin/python" --fork "$(cargo xtask venv)/bin/python" \
    --programs "$out/programs/bin" --out "$out/measured"
step bench cargo xtask bench --real --strict --json "$out/bench.json" --out "$out/plots"
cp -r target/upstream/logs "$out/upstream-logs" || true

if [[ -n ${GITHUB_STEP_SUMMARY:-} ]]; then
    {
        echo '```'
        cat "$out"/{tests,gpu,bench}.txt
        echo '```'
    } >>"$GITHUB_STEP_SUMMARY"
fi
if ((${#failed[@]} > 0)); then
    echo "failed: ${failed[*]}; the output of each is in $out"
    exit 1
fi
