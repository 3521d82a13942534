#!/usr/bin/env bash
# Runs client programs with stock, the fork and the plug-in, and compares what they can observe: docs/clients.md. Libraries (300 MB) are
# fetched once. FILE (target/clients.xml) gets each run's figures, as JUnit.
#
# usage: ci/clients.sh [FILE [OPTION...]]     (OPTION: pytest's, such as -k kv-pool, or test_faults.py; about ten minutes on two cores)
#
# TORCH names another release than the newest. REAL=1 runs them on this machine's GPU instead of the simulator.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

mkdir -p target/clients
exec 9>target/clients/.lock
flock 9
file=$(realpath "${1:-target/clients.xml}")
shift || true
tests=test_clients.py
if [[ ${1:-} == test_*.py ]]; then
    tests=$1
    shift
fi
release=(${TORCH:+--torch "$TORCH"})
fork=$(cargo xtask venv "${release[@]}")/bin/python
stock=$(cargo xtask venv --stock "${release[@]}")/bin/python
plugin=target/clients/plugin
rm -rf "$plugin"
cargo xtask build-plugin "${release[@]}" --out target/clients/dist --json >target/clients/plugin.json
wheel=$(python3 -c 'import json; print(json.load(open("target/clients/plugin.json"))["path"])')
python3 -m zipfile --extract "$wheel" "$plugin"

# Without dependencies: all are in the list, but torch, which the environments have.
list=tests/clients/requirements.txt
libraries=target/clients/libraries-$(sha256sum "$list" | cut -c1-12)-$("$fork" -c 'import sys; print(sys.implementation.cache_tag)')
if [[ ! -d $libraries ]]; then
    rm -rf target/clients/libraries-* target/clients/part
    "$fork" -m pip install --quiet --no-deps --no-compile --requirement "$list" --target target/clients/part
    mv target/clients/part "$libraries"
fi
"$fork" -m pip install --quiet pytest pytest-xdist
cd tests/clients
runtime=(cargo xtask sim -- env)
if [[ ${REAL:-} == 1 ]]; then
    runtime=(env PINBUDDY_TEST_REAL=1)
fi
"${runtime[@]}" "$fork" -m pytest -p no:cacheprovider --junitxml "$file" --stock "$stock" --plugin "$root/$plugin" \
    --libraries "$root/$libraries" "$tests" "$@"
