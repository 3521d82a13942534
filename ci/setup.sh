#!/usr/bin/env bash
# Installs what a fresh GitHub runner lacks: GoogleTest, g++ for aarch64 and the tested Rust with rustfmt and clippy; and frees disk space for two
# environments with torch. Changes nothing on other machines.
set -euo pipefail

if [[ ${RUNNER_ENVIRONMENT:-} != github-hosted ]]; then
    echo "setup: not a runner of GitHub's; install GoogleTest, rustfmt and clippy by hand"
    exit 0
fi
# Unused toolkits, some 30 GB: a release's wheels take as much together.
sudo rm -rf /usr/local/lib/android /usr/share/dotnet /usr/local/.ghcup /opt/ghc /usr/share/swift /opt/az /opt/hostedtoolcache/CodeQL
sudo apt-get update --quiet
sudo apt-get install --quiet --yes --no-install-recommends g++ g++-aarch64-linux-gnu libgtest-dev
# The toolchain that everything is tested with, and that releases are built with: a wheel's bytes depend on it. Not in a
# rust-toolchain.toml, with which rustup would refuse any other one to users without network; 1.90 and later will do.
rust=1.95.0
rustup toolchain install "$rust" --profile minimal --component rustfmt --component clippy
rustup default "$rust"
df -h / | tail -1
