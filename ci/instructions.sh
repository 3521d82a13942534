#!/usr/bin/env bash
# Counts the instructions of a request and its release, from `allocate` to the simulated driver, in C++ and in Rust, and
# fails if they are more than 5 % above the baseline in ci/instructions.txt. Times are too noisy for that.
#
# usage: ci/instructions.sh [--update]     (--update writes the baseline anew)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

baseline=ci/instructions.txt
margin=5 # percent
pairs=400
# In the words of tests/bench/requests.cpp: cached blocks, blocks that a stream uses, and what is split and merged.
patterns=(4096 8388608 event small-event mixed miss small-miss 50-random never-again)

if ! command -v valgrind >/dev/null; then
    echo "instructions: skipped, there is no valgrind here (it counts them; Debian: apt-get install valgrind)"
    exit 0
fi

# Instructions depend on the compilers.
compilers="$(rustc --version), g++ $(g++ -dumpfullversion), $(uname -m)"
if [[ ${1:-} != --update ]] && ! grep -qxF "# $compilers" "$baseline"; then
    echo "instructions: skipped, the baseline is of other compilers:"
    echo "  found     $compilers"
    echo "  expected  $(sed -n '1s/^# //p' "$baseline")"
    echo "  to do     ci/instructions.sh --update, on a commit that is known to be good"
    exit 0
fi

environment=$(cargo xtask venv)
torch=$(echo "$environment"/lib/python*/site-packages/torch)
harness=$(python3 tests/python/native.py tests/bench "$torch" -O2)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

loop="bench::Loop::run(long)"
# One process does all; each measured run of its loop gives a file. Pins are counted, not made.
for pattern in "${patterns[@]}"; do
    printf 'requests %s\npairs %d\n' "$pattern" $pairs
done |
    PINBUDDY_SIM_LOCK=0 BUDDY_BACKING=cuda BUDDY_MAX_MB=20000 BUDDY_WARMUP=sync \
        cargo xtask sim -- bash -c "export LD_LIBRARY_PATH='$torch/lib':\$LD_LIBRARY_PATH; exec \"\$@\"" sim \
        valgrind --tool=callgrind --collect-atstart=no --toggle-collect="$loop" --dump-after="$loop" \
        --callgrind-out-file="$work/out" "$harness" >"$work/answers" 2>"$work/complaints" || true
if [[ $(grep -c '^ns=' "$work/answers") != "${#patterns[@]}" ]]; then
    cat "$work/answers" "$work/complaints"
    exit 1
fi

# The harness runs a loop twice for each pattern: a quarter, which is not counted, and the whole.
for ((i = 0; i < ${#patterns[@]}; i++)); do
    awk -v pattern="${patterns[i]}" -v pairs=$pairs '$1 == "totals:" { printf "%s %.1f\n", pattern, $2 / pairs }' \
        "$work/out.$((2 * i + 2))"
done >"$work/counts"

if [[ ${1:-} == --update ]]; then
    {
        echo "# $compilers"
        echo "# Instructions for a request and its release; made by ci/instructions.sh --update."
        cat "$work/counts"
    } >"$baseline"
    cat "$baseline"
    exit 0
fi

awk -v margin=$margin '
    NR == FNR { if ($1 != "#") expected[$1] = $2; next }
    {
        change = ($2 / expected[$1] - 1) * 100
        if (change > margin) bad = 1
        printf "%-12s %8.1f  baseline %8.1f  %+6.1f %%  %s\n", $1, $2, expected[$1], change, (change > margin ? "too many" : "ok")
    }
    END {
        if (bad) {
            printf "instructions: more than %d %% above the baseline\n", margin
            print "  to do     look at the change; if it is worth it, ci/instructions.sh --update"
        }
        exit bad
    }' "$baseline" "$work/counts"
