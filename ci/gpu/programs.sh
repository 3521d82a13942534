#!/usr/bin/env bash
# Compiles the programs of a run and PyTorch's tests against an official wheel, for a machine with a GPU, that torch and no compiler.
# They have no fixed paths.
#
# usage: ci/gpu/programs.sh VERSION OUT [--source DIR]
#
#   VERSION   the torch release to compile against
#   OUT       where the folders bin and pytorch go
#   --source  a PyTorch tree to take PyTorch's own tests from (Debian's 2.6.0)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage="usage: ci/gpu/programs.sh VERSION OUT [--source DIR]"
version=${1:?$usage} out=${2:?$usage}
shift 2
python=$(cargo xtask venv --torch "$version" --stock)/bin/python
torch=$("$python" -c 'import torch; print(torch.__path__[0])')

# CUDA's headers that the wheel's own packages lack.
include=$(cargo xtask venv --torch "$version" --stock --headers)

mkdir -p "$out/bin"
python3 tests/upstream/compiled.py --stock "$python" --include "$include" "$@" "$out"
cp "$(python3 tests/python/native.py tests/bench "$torch" -O2)" "$out/bin/harness"
env --unset CARGO_BUILD_TARGET cargo build --quiet --locked --package pinbuddy-gpu-questions --target-dir target
cp target/debug/pinbuddy-gpu-questions "$out/bin/questions"
