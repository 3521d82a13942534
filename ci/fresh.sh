#!/usr/bin/env bash
# To be sourced: has what follows run as on a machine that has fetched nothing before. What only an earlier
# run has left behind is then missed here, and not by the first user.
#
#   fresh_cargo_home FOLDER   makes FOLDER cargo's home: empty, but for the configuration of the one in use
#   fresh_cache FOLDER        makes FOLDER the user's cache: empty; official wheels are fetched again

fresh_cargo_home() {
    local theirs=${CARGO_HOME:-$HOME/.cargo} name
    if [[ $theirs -ef $1 ]]; then
        echo "fresh_cargo_home: $1 is cargo's home already, and would be lost" >&2
        return 1
    fi
    # The same place each time: what is compiled from it stays current.
    rm -rf "$1"
    mkdir -p "$1"
    # Which registry, proxy and certificates: how this machine is set up, not what it has fetched.
    for name in config.toml config; do
        if [[ -f $theirs/$name ]]; then
            cp "$theirs/$name" "$1/$name"
        fi
    done
    export CARGO_HOME=$1
    # cargo looks for its commands in its home, too: cargo-nextest. Rust itself, rustup's, has another home.
    export PATH=$PATH:$theirs/bin
}

fresh_cache() {
    rm -rf "$1"
    mkdir -p "$1"
    export XDG_CACHE_HOME=$1
}
