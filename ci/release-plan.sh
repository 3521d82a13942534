#!/usr/bin/env bash
# Lists the fork wheels of a release: each supported torch with each Python that patches/versions.toml names, as JSON on
# standard output, and as the output `include` of a workflow's step. Not 3.9: the Python package needs 3.10.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

json=$(awk -F'"' '
    /^\[/ { wheel = $0 == "[[release]]" }
    wheel && /^version = / { torch = $2 }
    wheel && /^pythons = / {
        for (i = 2; i < NF; i += 2)
            if ($i != "3.9") printf "%s{\"torch\":\"%s\",\"python\":\"%s\"}", n++ ? "," : "[", torch, $i
    }
    END { print "]" }' patches/versions.toml)
echo "$json"
if [[ -n ${GITHUB_OUTPUT:-} ]]; then
    echo "include=$json" >>"$GITHUB_OUTPUT"
fi
