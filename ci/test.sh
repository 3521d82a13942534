#!/usr/bin/env bash
# Every test, in the simulator. Elsewhere than on Debian with PyTorch's own and its memory_viz from its repository: what Debian
# packages of them, and `cargo xtask test` takes by itself, is not to be had from other distributions.
#
# usage: ci/test.sh [OPTION...]     (OPTION: cargo xtask test's)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

source=()
if ! grep --quiet '^ID=debian$' /etc/os-release; then
    tag=v2.6.0
    tree=target/pytorch-$tag
    mkdir -p target
    ci/upstream-checkout.sh "$tag" "$tree" /version.txt '/test/*.py' /aten/src/ATen/test/ /torch/utils/viz/
    source=(--source "$tree")
fi
cargo xtask test "${source[@]}" "$@"
