#!/usr/bin/env bash
# Has cargo-deny hold dependencies to deny.toml: licences, bans, sources, advisories. Advisories are in a repository of
# their own: where it cannot be fetched, that is said, and is no failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=ci/tools.sh
source ci/tools.sh

# A build here downloads only what this system needs; cargo-deny asks for all packages.
cargo fetch --locked --quiet
cargo-deny --locked check bans licenses sources
export GIT_TERMINAL_PROMPT=0
if timeout --kill-after=10 120 cargo-deny --locked fetch db; then
    cargo-deny --locked --offline check advisories
else
    echo "deny: advisories were NOT looked at: their database cannot be fetched" >&2
fi
