#!/usr/bin/env bash
# Formatting and lints, warnings denied; sources, scripts, workflows and patches as they should be.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo fmt --all --check
cargo clippy --locked --workspace --all-targets -- --deny warnings
cargo xtask lint
cargo xtask patch lint
