#!/usr/bin/env bash
# Writes one list of the hashes of all wheels below a folder, and checks them.
#
# usage: ci/release-sums.sh DIR
set -euo pipefail

cd "$1"
find . -name '*.whl' -printf '%h\n' | sort --unique | while read -r folder; do
    (cd "$folder" && sha256sum --check --quiet ./*.whl.sha256)
done
find . -name '*.whl.sha256' -exec cat {} + | sort --key=2 >SHA256SUMS
wc -l <SHA256SUMS
