#!/usr/bin/env bash
# Builds a fork wheel twice from scratch, and fails if the bytes differ.
#
# usage: ci/release-wheel.sh TORCH PYTHON [DIR]     (default: target/release-wheels)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=ci/built-twice.sh
source ci/built-twice.sh

built_twice "${3:-target/release-wheels}" cargo xtask build-wheel --torch "$1" --python "$2"
