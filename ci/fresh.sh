#!/usr/bin/env bash
# To be sourced: lets the following commands run as on a machine that has fetched nothing before, so that dependence
# on an earlier run is found here and not by the first user.
#
#   fresh_cargo_home FOLDER   makes FOLDER cargo's home: empty, but for the configuration of the one in use
#   fresh_cache FOLDER        makes FOLDER the user's cache: empty; official wheels are fetched again

fresh_cargo_home() {
    local theirs=${CARGO_HOME:-$HOME/.cargo} name
    if [[ $theirs -ef $1 ]]; then
        echo "fresh_cargo_home: $1 is cargo's home already, and would be lost" >&2
        return 1
    fi
    # The same path each time, so that compiled crates stay current.
    rm -rf "$1"
    mkdir -p "$1"
    # Registry, proxy and certificates: this machine's setup, not its downloads.
    for name in config.toml config; do
        if [[ -f $theirs/$name ]]; then
            cp "$theirs/$name" "$1/$name"
        fi
    done
    export CARGO_HOME=$1
    # cargo also searches its home for commands, such as cargo-nextest. rustup's home does not change.
    export PATH=$PATH:$theirs/bin
}

fresh_cache() {
    rm -rf "$1"
    mkdir -p "$1"
    export XDG_CACHE_HOME=$1
}
