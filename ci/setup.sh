#!/usr/bin/env bash
# Installs what a fresh GitHub runner lacks: GoogleTest, rustfmt and clippy; and frees disk space for two
# environments with torch. Changes nothing on other machines.
set -euo pipefail

if [[ ${RUNNER_ENVIRONMENT:-} != github-hosted ]]; then
    echo "setup: not a runner of GitHub's; install GoogleTest, rustfmt and clippy by hand"
    exit 0
fi
# Unused toolkits for phones and .NET, some 15 GB.
sudo rm -rf /usr/local/lib/android /usr/share/dotnet
sudo apt-get update --quiet
sudo apt-get install --quiet --yes --no-install-recommends g++ libgtest-dev
rustup toolchain install stable --profile minimal --component rustfmt --component clippy
rustup default stable
df -h / | tail -1
