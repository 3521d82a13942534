#!/usr/bin/env bash
# Checks scripts (shellcheck), workflows (actionlint, zizmor), the rules of tests/checkout, and dependencies (cargo-deny).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=ci/tools.sh
source ci/tools.sh
# A hook's variables name its repository, and tests make their own.
while read -r name; do unset "$name"; done < <(git rev-parse --local-env-vars)

list=$(python3 tests/checkout/rules.py)
mapfile -t scripts <<<"$list"
echo "rules: ${#scripts[@]} scripts"
shellcheck --norc "${scripts[@]}"
actionlint -no-color -shellcheck shellcheck -pyflakes=
zizmor --offline --quiet --no-progress --color=never --no-config --persona=pedantic .github/workflows
# By the file, so that none is an error.
for file in tests/checkout/test_*.py; do
    PYTHONDONTWRITEBYTECODE=1 python3 "$file"
done
ci/deny.sh
