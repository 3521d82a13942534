#!/usr/bin/env bash
# Makes the folder that a machine with a GPU needs besides python3 with torch: the plug-in, compiled programs, tests
# and their imports. That machine fetches and compiles nothing. Refuses to make more than 40 MB.
#
# usage: ci/gpu/pack.sh [--torch VERSION] [--source DIR] [--plugin WHEEL] [OUT]
#
#   --torch   the release that is installed there (2.11.0)
#   --source  a PyTorch tree to take PyTorch's own tests from (Debian's 2.6.0)
#   --plugin  a wheel of the plug-in at hand, instead of building one
#   OUT       the folder (target/gpu-pack)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

most=40000000
torch=2.11.0 out=target/gpu-pack plugin=
source=()
while (($# > 0)); do
    case $1 in
        --torch) torch=$2 && shift 2 ;;
        --source) source=(--source "$2") && shift 2 ;;
        --plugin) plugin=$2 && shift 2 ;;
        -*) echo "error: there is no option $1; the head of $0 says which there are" >&2 && exit 2 ;;
        *) out=$1 && shift ;;
    esac
done
if [[ -e $out && ! -e $out/pack.json ]]; then
    echo "error: $out is there and no pack; name another folder" >&2
    exit 2
fi

# A pack with its final name is complete.
work=$out.part
rm -rf "$work"
mkdir -p "$work/bin" "$work/ci" "$work/tests"

if [[ -z $plugin ]]; then
    cargo xtask build-plugin --torch "$torch" --out "$work/wheel"
    plugin=$(echo "$work"/wheel/*.whl)
fi
python3 -m zipfile --extract "$plugin" "$work/plugin"
# zipfile drops what may be executed.
chmod +x "$work"/plugin/pinbuddy/bin/*
rm -rf "$work/wheel"

# The harness of the benchmark, PyTorch's C++ test of the allocator, its Python tests, and the questions for the driver.
ci/gpu/programs.sh "$torch" "$work" "${source[@]}"
strip "$work"/bin/*

cp -r ci/gpu "$work/ci/"
for tests in bench gpu programs python upstream; do
    mkdir "$work/tests/$tests"
    cp tests/$tests/*.py "$work/tests/$tests/"
done
# Single tests that need a checkout are left out by the same mark (tests/gpu/suites.py).
grep -l '^pytestmark = pytest.mark.checkout' tests/python/test_*.py | sed "s|^|$work/|" | xargs rm
# What tests import and run.
cp -r tests/python/faults "$work/tests/python/"
cp -r tests/stress "$work/tests/"
cp -r examples "$work/"
find "$work" -name __pycache__ -prune -exec rm -r {} +
cp LICENSE NOTICE "$work/"

# For any Python: packages are pure or use the stable ABI. numpy is neither, so the machine has to have it.
fetch() {
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-compile \
        --target "$work/packages" --only-binary :all: --python-version 3.11 "$@"
}
fetch --implementation py --abi none --platform any pytest pytest-xdist expecttest hypothesis
fetch --implementation cp --abi abi3 --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 --no-deps --upgrade psutil
rm -rf "$work/packages/bin"

# The newest glibc version that the programs need; on an older machine they are skipped.
glibc=$(objdump -T "$work"/bin/* | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -1)
cat >"$work/pack.json" <<JSON
{"torch": "$torch", "plugin": "$(basename "$plugin")", "programs_need": "$glibc"}
JSON

size=$(du --summarize --apparent-size --bytes "$work" | cut -f1)
if ((size > most)); then
    du --apparent-size --bytes --max-depth 2 "$work" | sort -n | tail -12 >&2
    echo "error: $work has $size bytes, and a pack at most $most" >&2
    exit 1
fi
rm -rf "$out"
mv "$work" "$out"
echo "$out: $((size / 1000000)) MB for torch $torch, programs for $glibc and newer; there: $out/ci/gpu/run.sh"
