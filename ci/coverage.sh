#!/usr/bin/env bash
# Counts the lines of the engine and the bridge that run in tests: the Rust tests of the parts, and the Python tests with a
# library that counts. Fails if too few run. Processes that abort leave no counts, so the figures are at most too low.
# Lines that do not run are in target/coverage: engine.txt, bridge.txt, cpp.txt.
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
    --package pinbuddy-machine --package pinbuddy-config --package pinbuddy-store --package pinbuddy-bridge)
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
"$llvm/llvm-cov" export --format=lcov --instr-profile "$out/merged.profdata" "${objects[@]}" >"$out/rust.lcov"
# Counts the lines of folders, lists those that did not run, and fails below PERCENT. Files and folders called tests are left out.
rust() {
    awk -v name="$1" -v percent="$2" -v folders="$3" -v list="$out/$1.txt" '
        /^SF:/ { inside = match($0, folders) && $0 !~ /\/tests(\.rs|\/)/; file = substr($0, RSTART) }
        inside && /^DA:/ {
            split(substr($0, 4), at, ",")
            line = file ":" at[1]
            if (!(line in runs)) all += 1
            if (at[2] > 0 && !runs[line]) ran += 1
            runs[line] += at[2] > 0
        }
        END {
            if (!all) { print name ": no line was counted"; exit 1 }
            for (line in runs) if (!runs[line]) print line >list
            printf "%s: %d of %d lines ran: %.1f %%; at least %d %%\n", name, ran, all, 100 * ran / all, percent
            exit ran * 100 < all * percent
        }' "$out/rust.lcov"
}
bad=0
rust engine 95 'rust-core/engine/src/' || bad=1
rust bridge 85 'cxx-bridge/(machine/)?src/' || bad=1
gcovr --root . --filter cxx-bridge/cpp/ --fail-under-line 85 --print-summary --txt "$out/cpp.txt" "$library" || bad=1
exit "$bad"
