#!/usr/bin/env bash
# Formatting, lints with warnings denied, and the rules for sources, scripts, workflows, documents and patches.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo fmt --all --check
cargo clippy --locked --workspace --all-targets -- --deny warnings
ci/rules.sh
