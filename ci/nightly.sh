#!/usr/bin/env bash
# Runs the README's two commands like a new user, with no crates or wheels cached, and what proves a release rather than a change
# (`cargo xtask test --help`); then fuzzes each reader of what comes from outside for 30 seconds. The second command takes
# PyTorch's tests as ci/test.sh does.
#
# usage: ci/nightly.sh     (fetches some 6 GB)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=ci/fresh.sh
source ci/fresh.sh
fresh_cargo_home "$PWD/target/fresh/cargo"
fresh_cache "$PWD/target/fresh/cache"
cargo xtask build-wheel
ci/test.sh --all
EACH=30 ci/explore.sh fuzz
