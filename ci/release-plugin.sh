#!/usr/bin/env bash
# Builds the plug-in for every supported torch twice from scratch, and fails if the bytes differ: one wheel that people
# install with pip and nothing else.
#
# usage: ci/release-plugin.sh [DIR] [OPTION...]     (default: target/release-wheels --all; OPTION: build-plugin's)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=ci/built-twice.sh
source ci/built-twice.sh

out=target/release-wheels
if (($#)) && [[ $1 != -* ]]; then
    out=$1
    shift
fi
options=("$@")
((${#options[@]})) || options=(--all)
built_twice "$out" cargo xtask build-plugin "${options[@]}"
