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
read -r cuda torch < <("$python" -c 'import torch; print(torch.version.cuda, torch.__path__[0])')

# CUDA's headers that the wheel's own packages lack.
named() {
    python3 -c 'import sys, tomllib; print(*tomllib.load(open("patches/versions.toml", "rb"))["cuda"][sys.argv[1]][sys.argv[2]], sep="\n")' "$cuda" "$1"
}
packages=$(named packages)
headers=$PWD/target/cuda-$cuda-$(sha256sum <<<"$packages" | cut -c1-16)
if [[ ! -d $headers ]]; then
    rm -rf "$headers.part"
    xargs "$python" -m pip install --quiet --no-deps --only-binary=:all: --target "$headers.part" <<<"$packages"
    mv "$headers.part" "$headers"
fi
include=$(named include | sed "s|^|$headers/|" | paste -sd :)

mkdir -p "$out/bin"
python3 tests/upstream/compiled.py --stock "$python" --include "$include" "$@" "$out"
python3 tests/bench/build.py "$torch" "$out/bin/harness" --once
env --unset CARGO_BUILD_TARGET cargo build --quiet --locked --package pinbuddy-gpu-questions --target-dir target
cp target/debug/pinbuddy-gpu-questions "$out/bin/questions"
