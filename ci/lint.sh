#!/usr/bin/env bash
# Formatting and lints, warnings denied.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo fmt --all --check
cargo clippy --locked --workspace --all-targets -- --deny warnings
