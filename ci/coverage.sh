#!/usr/bin/env bash
# Counts the lines of the engine and the bridge that run in tests: the Rust tests of the parts, and the Python tests with a
# library that counts. Fails if too few run. Processes that abort leave no counts, so the figures are at most too low.
# Lines of Rust that do not run are in target/coverage/rust.txt; those of C++ in target/coverage/cpp.txt.
#
# usage: ci/coverage.sh     (needs llvm-tools of rustc's version, or LLVM_BIN, their folder; gcov of g++'s version; gcovr)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

llvm=${LLVM_BIN:-$(rustc --print target-libdir)/../bin}
if [[ ! -x $llvm/llvm-cov ]]; then
    echo "coverage: there is no llvm-cov in $llvm; to have it: rustup component add llvm-tools" >&2
    exit 1
fi
if ! command -v gcovr >/dev/null; then
    echo "coverage: there is no gcovr; to have it: pipx install gcovr" >&2
    exit 1
fi
out=target/coverage
library=target/wheel/cargo-coverage
rm -rf "$out/counts"
mkdir -p "$out/counts"
if [[ -d $library ]]; then
    find "$library" -name '*.gcda' -delete
fi

tests=(cargo test --tests --locked --target-dir "$out" --package pinbuddy-core --package pinbuddy-model
    --package pinbuddy-machine --package pinbuddy-bridge)
export CARGO_ENCODED_RUSTFLAGS=-Cinstrument-coverage INSTA_UPDATE=no
# Build scripts count as well; their counts are for nobody.
LLVM_PROFILE_FILE=$PWD/$out/scripts.profraw "${tests[@]}" --no-run --message-format json >"$out/programs.json"
LLVM_PROFILE_FILE=$PWD/$out/counts/tests-%2m.profraw "${tests[@]}"
unset CARGO_ENCODED_RUSTFLAGS
# Other rows judge failures: counting takes time, and writes files that some tests do not expect.
PINBUDDY_TEST_LIBRARY=coverage PINBUDDY_TEST_END=whole LLVM_PROFILE_FILE=$PWD/$out/counts/library-%2m.profraw \
    cargo xtask test --only assertions || echo "coverage: tests failed; other checks judge them"

"$llvm/llvm-profdata" merge --sparse --output "$out/merged.profdata" "$out"/counts/*.profraw
mapfile -t programs < <(python3 - "$out/programs.json" <<'PYTHON'
import json, sys
for line in open(sys.argv[1]):
    if program := json.loads(line).get("executable"):
        print(program)
PYTHON
)
objects=("$library/wheel-debug/libpinbuddy_bridge.so")
for program in "${programs[@]}"; do
    objects+=(--object "$program")
done
# Lists uncovered lines, prints the share, and fails below PERCENT.
rust() {
    local name=$1 percent=$2
    shift 2
    "$llvm/llvm-cov" export --format=lcov --instr-profile "$out/merged.profdata" \
        --ignore-filename-regex '/tests(\.rs|/)' "${objects[@]}" --sources "$@" >"$out/$name.lcov"
    awk -F '[:,]' -v name="$name" -v percent="$percent" -v list="$out/rust.txt" '
        /^SF:/ { file = $2 }
        /^DA:/ { all += 1; if ($3 > 0) ran += 1; else print file ":" $2 >>list }
        END { if (!all) { print name ": no line was counted"; exit 1 }
              printf "%s: %d of %d lines ran: %.1f %%; at least %d %%\n", name, ran, all, 100 * ran / all, percent
              exit ran * 100 < all * percent }' "$out/$name.lcov"
}
: >"$out/rust.txt"
rust engine 95 rust-core/engine/src
rust bridge 85 cxx-bridge/src cxx-bridge/machine/src
gcovr --root . --filter cxx-bridge/cpp/ --fail-under-line 85 --print-summary --txt "$out/cpp.txt" "$library"
