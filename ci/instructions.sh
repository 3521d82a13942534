#!/usr/bin/env bash
# Counts the engine's instructions for a request and its release, and fails if they are more than 3 % above the
# baseline in ci/instructions.txt. Times are too noisy for that.
#
# usage: ci/instructions.sh [--update]     (--update writes the baseline anew)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

baseline=ci/instructions.txt
margin=3 # percent
few=2000 many=12000 # pairs; the difference is what counts

if ! command -v valgrind >/dev/null; then
    echo "instructions: skipped, there is no valgrind here (it counts them; Debian: apt-get install valgrind)"
    exit 0
fi

# Instructions depend on the compiler.
compiler=$(rustc --version)
machine=$(uname -m)
if [[ ${1:-} != --update ]] && ! grep -qxF "# $compiler, $machine" "$baseline"; then
    echo "instructions: skipped, the baseline is of another compiler:"
    echo "  found     $compiler, $machine"
    echo "  expected  $(sed -n '1s/^# //p' "$baseline")"
    echo "  to do     ci/instructions.sh --update, on a commit that is known to be good"
    exit 0
fi

cargo build --quiet --release --locked --package pinbuddy-core --example instructions
program=$(cargo metadata --format-version 1 --no-deps --locked |
    sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release/examples/instructions

counts=$(mktemp)
trap 'rm -f "$counts"' EXIT

# The instructions of a whole process.
count() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$@" 2>&1 |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

"$program" --list | while read -r scenario; do
    less=$(count "$scenario" $few)
    more=$(count "$scenario" $many)
    awk -v s="$scenario" -v d=$((more - less)) -v n=$((many - few)) \
        'BEGIN { printf "%s %.1f\n", s, d / n }'
done >"$counts"

if [[ ${1:-} == --update ]]; then
    {
        echo "# $compiler, $machine"
        echo "# Instructions for a request and its release; made by ci/instructions.sh --update."
        cat "$counts"
    } >"$baseline"
    cat "$baseline"
    exit 0
fi

awk -v margin=$margin '
    NR == FNR { if ($1 != "#") expected[$1] = $2; next }
    !($1 in expected) {
        printf "%-20s %8.1f  new: no baseline\n", $1, $2; bad = 1; next
    }
    {
        change = ($2 / expected[$1] - 1) * 100
        verdict = change > margin ? "too many" : "ok"
        if (change > margin) bad = 1
        printf "%-20s %8.1f  baseline %8.1f  %+6.1f %%  %s\n", $1, $2, expected[$1], change, verdict
        delete expected[$1]
    }
    END {
        for (name in expected) { printf "%-20s is gone, and in the baseline\n", name; bad = 1 }
        if (bad) {
            printf "instructions: more than %d %% above the baseline, or not the same scenarios.\n", margin
            print "  to do     look at the change; if it is worth it, ci/instructions.sh --update"
        }
        exit bad
    }' "$baseline" "$counts"
