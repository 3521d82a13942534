#!/usr/bin/env bash
# Shows within fourteen minutes what only a GPU can, with this machine's python3 and torch: tests, measurements,
# results.json and a table. Run it in the folder that ci/gpu/pack.sh made, or in a checkout with --stock and --fork.
# Nothing else may use the GPU meanwhile: tests would fail for want of memory, and figures be wrong.
#
# usage: ci/gpu/run.sh [--quick] [--simulator] [--out DIR] ...     (--help says all; DIR: $OUT, or gpu-results)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=$(command -v "${PYTHON:-python3}") || {
    echo "error: there is no ${PYTHON:-python3}; PYTHON names one that has torch" >&2
    exit 2
}
exec "$python" "$root/tests/gpu/run.py" --out "${OUT:-gpu-results}" "$@"
