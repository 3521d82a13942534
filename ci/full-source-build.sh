#!/usr/bin/env bash
# A full build of PyTorch from source with our library in it, and its tests: for a large machine with a
# CUDA toolkit (16 cores, 64 GB of memory and 60 GB of disk are a sensible least; a GPU for --real).
#
# usage: ci/full-source-build.sh TAG [DIR] [-- OPTIONS OF build-wheel]
#   TAG      a release's tag in PyTorch's repository, for instance v2.15.0
#   DIR      where its checkout is or goes (default: target/pytorch-TAG)
#   OPTIONS  for instance --keep
#
# PyTorch's own variables hold, for instance TORCH_CUDA_ARCH_LIST=9.0 MAX_JOBS=32 CMAKE_CUDA_COMPILER_LAUNCHER=sccache.
# PYTORCH_REPOSITORY names another repository than PyTorch's own. REAL=1 also runs the tests on this machine's GPU.
# The same command resumes an interrupted build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tag=${1:?usage: ci/full-source-build.sh TAG [DIR] [-- OPTIONS]}
shift
tree=target/pytorch-$tag
if [[ $# -gt 0 && $1 != -- ]]; then
    tree=$1
    shift
fi
[[ ${1:-} == -- ]] && shift
repository=${PYTORCH_REPOSITORY:-https://github.com/pytorch/pytorch}

if [[ ! -d $tree/.git ]]; then
    git clone --depth 1 --branch "$tag" --recurse-submodules --shallow-submodules -- "$repository" "$tree"
fi
git -C "$tree" submodule update --init --recursive --depth 1

# Reports missing prerequisites before the long build.
cargo xtask build-wheel --source "$tree" --dry-run "$@"
summary=$(cargo xtask build-wheel --source "$tree" --out dist/source --json "$@")
echo "$summary"
wheel=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["path"])' "$summary")

# Installs the wheel as users do.
environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet "$wheel" numpy pytest psutil expecttest hypothesis

# In the simulator: our own tests, and the tree's pinned-memory tests, with all requests through the engine.
simulated() {
    cargo xtask sim -- env PYTHONDONTWRITEBYTECODE=1 "$@"
}
simulated "$environment/bin/python" -m pytest -q tests/python
report=$environment/report
PYTHONPATH=$tree/test BUDDY_THRESHOLD_MB=0 BUDDY_BLOCK_SIZE_MB=64 simulated \
    "$environment/bin/python" tests/upstream/run_tests.py "$tree/test/test_cuda.py" pinned_memory "$report"
cat "$report"
if [[ ${REAL:-} == 1 ]]; then
    PYTHONPATH=$tree/test BUDDY_THRESHOLD_MB=0 \
        "$environment/bin/python" tests/upstream/run_tests.py "$tree/test/test_cuda.py" pinned_memory "$report"
    cat "$report"
fi
if grep -q '"outcome": "failed"' "$report" || ! grep -q '"outcome": "passed"' "$report"; then
    echo "PyTorch's pinned-memory tests do not all pass on $wheel" >&2
    exit 1
fi
echo "$wheel"
