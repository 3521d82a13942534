#!/usr/bin/env bash
# What a fresh runner of GitHub's lacks: GoogleTest, rustfmt and clippy, and room for two environments with
# torch. Changes nothing on a machine that is not such a runner.
set -euo pipefail

if [[ ${RUNNER_ENVIRONMENT:-} != github-hosted ]]; then
    echo "setup: not a runner of GitHub's; cargo xtask doctor says what this machine lacks"
    exit 0
fi
# Toolkits of phones and of .NET, some 15 GB of what nothing here uses.
sudo rm -rf /usr/local/lib/android /usr/share/dotnet
sudo apt-get update --quiet
sudo apt-get install --quiet --yes --no-install-recommends g++ libgtest-dev
rustup toolchain install stable --profile minimal --component rustfmt --component clippy
rustup default stable
df -h / | tail -1
