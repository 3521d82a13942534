#!/usr/bin/env bash
# The releases of torch that there is an official wheel to fork of, the oldest first, one a line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
awk '/^\[/ { wheel = $0 == "[[release]]" }
     wheel && /^version = / { gsub(/"/, "", $3); print $3 }' patches/versions.toml | sort --version-sort
