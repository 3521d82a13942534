#!/usr/bin/env bash
# Explores behaviour for longer than tests do. docs/reliability-checks.md says what each check shows.
#
# usage: ci/explore.sh NAME... | --all     (without a name: lists the checks)
#
# ACTIONS (10000000) of each model; EACH (30) seconds of each fuzz target and each sanitizer; SOAK (EACH) seconds of
# the soak; PINBUDDY_INTERLEAVINGS of each program of threads; PINBUDDY_CLIENTS, names of client programs. A check prints its
# figures in its last lines. All checks run, even after a failure; the exit status says whether one failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
actions=${ACTIONS:-10000000}
each=${EACH:-30}
soak=${SOAK:-$each}

# Ends the check: a tool is missing, and this is how to have it.
missing() {
    echo "${FUNCNAME[1]}: there is no $1; to have it: $2" >&2
    exit 1
}

# Runs one file of tests/python with the plug-in that asserts, and adds up the figures that its tests write.
python_tests() {
    local figures status=0
    figures=$(mktemp)
    PINBUDDY_TEST_ALL=1 PYTEST_ADDOPTS=$1 PINBUDDY_FIGURES=$figures cargo xtask test --only assertions || status=$?
    python3 - "$figures" <<'PYTHON'
import collections, json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert lines, "the tests explored nothing"
print(json.dumps(sum(map(collections.Counter, lines), collections.Counter())))
PYTHON
    rm "$figures"
    return "$status"
}

# Engine and provisioner against bitmaps, audited after each action.
model() {
    cargo run --quiet --package pinbuddy-model --example soak -- --actions "$actions"
}

# libFuzzer on each reader of text and bytes from outside, on stable Rust: LLVM's pass that counts edges has a name.
fuzz() {
    local program name found=target/fuzz/corpus failed=target/fuzz/failed bad=()
    RUSTFLAGS="--cfg=fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
        -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions" \
        cargo build --release --locked --package pinbuddy-fuzz --example libfuzzer \
        --target x86_64-unknown-linux-gnu --target-dir target/fuzz/build
    program=target/fuzz/build/x86_64-unknown-linux-gnu/release/examples/libfuzzer
    mkdir -p "$failed"
    for name in tests/fuzz/corpus/*; do
        name=$(basename "$name")
        mkdir -p "$found/$name"
        echo "fuzz: $name"
        if ! PINBUDDY_FUZZ_TARGET=$name "$program" "$found/$name" "tests/fuzz/corpus/$name" \
            -artifact_prefix="$failed/$name-" -max_total_time="$each" -max_len=4096 -rss_limit_mb=1024 -timeout=10 \
            -print_final_stats=1 -verbosity=0 2>&1 | tee /dev/stderr |
            grep '^stat::number_of_executed_units: *[1-9]' >/dev/null; then
            bad+=("$name")
        fi
    done
    if ((${#bad[@]})); then
        echo "fuzz: ${bad[*]} failed; copy each input from $failed to tests/fuzz/corpus/NAME, and fix the cause" >&2
        return 1
    fi
}

# Interleavings of requests, worker, clear and exit.
shuttle() {
    cargo test --locked --package pinbuddy-bridge --features shuttle --lib races:: -- --nocapture --test-threads 1 |
        awk '{ print } sub(/.*interleavings: /, "") { programs += 1; all += $1 }
             END { print programs + 0 " programs, " all + 0 " interleavings"; exit !all }'
}

# The library under ThreadSanitizer, under torch, and seeded defects.
tsan() {
    sanitized thread
}

# The same under AddressSanitizer and UndefinedBehaviorSanitizer.
asan() {
    sanitized address
}

sanitized() {
    PINBUDDY_SANITIZER=$1 PINBUDDY_SANITIZE_SECONDS=$each cargo xtask test --all --only library
}

# Small tests in Miri. Tests of whole gibibytes would take hours, so the modules are named; each must have a test.
miri() {
    cargo +nightly miri --version >/dev/null 2>&1 ||
        missing Miri "rustup toolchain install nightly --component miri,rust-src"
    # Tests of random cases keep what failed in files.
    export MIRIFLAGS=-Zmiri-disable-isolation PROPTEST_CASES=2
    in_miri pinbuddy-core arena:: buddy:: fill_order:: gauge:: node:: phases:: policy:: provision::ahead:: \
        provision::grow:: provision::pace:: provision::permits:: provision::warm:: records:: segment:: word::
    in_miri pinbuddy-slots align:: seeded::
    # Of the bridge, whose other unsafe code calls the system.
    in_miri pinbuddy-bridge guard:: lock::spin:: pending:: record::device:: record::ring:: record::writing:: thread_number::
}

in_miri() {
    local package=$1 module said
    shift
    said=$(mktemp)
    cargo +nightly miri test --package "$package" --lib --target-dir target/miri -- "$@" | tee "$said"
    for module in "$@"; do
        grep -q "^test $module" "$said" || {
            echo "miri: no test of $package is in $module; correct its name in ci/explore.sh" >&2
            return 1
        }
    done
    rm "$said"
}

# Each call to CUDA and the kernel fails in turn, beside stock.
faults() {
    PINBUDDY_TEST_SWEEP=all python_tests test_faults.py
}

# Defects that were put there on purpose are found: BUDDY_GUARD=1, hazards, the audit.
defects() {
    python_tests test_guard.py
    cargo test --locked --package pinbuddy-core --package pinbuddy-slots --lib -- audit::tests:: seeded:: | tee /dev/stderr |
        awk '/^test result: ok. [1-9]/ { good += 1 } END { exit good != 2 }'
}

# PyTorch's own tests, equal with stock and the fork.
upstream() {
    cargo xtask test --only PyTorch
}

# Programs that use torch as users do, each with ten faults, beside stock.
clients() {
    ci/clients.sh target/clients-faults.xml test_faults.py -n 2 ${PINBUDDY_CLIENTS:+-k "${PINBUDDY_CLIENTS// / or }"}
}

# Threads, streams, forks, clears and faults at once; every block is marked.
soak() {
    PINBUDDY_SOAK_SECONDS=$soak python_tests "test_soak.py -k 'creep or seeded'"
}

# A program of a day in simulated time: pinned memory does not creep.
day() {
    cargo run --quiet --locked --package pinbuddy-replay --example day
}

# Lines of the engine and the bridge that run in tests, in Rust (LLVM) and in C++ (gcov).
coverage() {
    ci/coverage.sh
}

# Licences, sources and advisories of dependencies.
deny() {
    ci/deny.sh
}

checks=(model fuzz shuttle tsan asan miri faults defects upstream clients soak coverage day deny)
if (($# == 0)); then
    echo "checks: ${checks[*]}"
    echo "usage: ci/explore.sh NAME... | --all"
    exit 0
fi
[[ $1 == --all ]] && set -- "${checks[@]}"
for name in "$@"; do
    if [[ " ${checks[*]} " != *" $name "* ]]; then
        echo "ci/explore.sh: $name is no check; expected one of: ${checks[*]}" >&2
        exit 2
    fi
done
if (($# == 1)); then
    "$1"
    exit
fi
# Each in a shell of its own: bash ignores failures within a command whose status is asked for.
failed=()
for name in "$@"; do
    echo "== $name"
    SECONDS=0
    ci/explore.sh "$name" || failed+=("$name")
    echo "== $name took $SECONDS s"
done
if ((${#failed[@]})); then
    echo "failed: ${failed[*]}; their output is above; again: ci/explore.sh ${failed[*]}" >&2
    exit 1
fi
