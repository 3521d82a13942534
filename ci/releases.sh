#!/usr/bin/env bash
# Lists the torch releases that can be forked from an official wheel, oldest first, one per line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
awk '/^\[/ { wheel = $0 == "[[release]]" }
     wheel && /^version = / { gsub(/"/, "", $3); print $3 }' patches/versions.toml | sort --version-sort
