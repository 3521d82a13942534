#!/usr/bin/env bash
# Sourced by what builds wheels for a release: builds one twice from scratch, and fails if the bytes differ. The build
# writes its hash beside it.
#
# usage: built_twice DIR COMMAND...     (COMMAND takes --out and --json)

built_twice() {
    local out=$1 again
    shift
    again=$(mktemp --directory)
    # shellcheck disable=SC2064  # as it is now
    trap "rm -rf '$again'" EXIT
    mkdir -p "$out"

    rm -rf target/wheel/cargo
    "$@" --out "$out" --json >"$again/first.json"
    rm -rf target/wheel/cargo
    "$@" --out "$again"

    local wheel name
    wheel=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["path"])' "$again/first.json")
    name=$(basename "$wheel")
    if ! cmp "$out/$name" "$again/$name"; then
        echo "two builds of $name differ in:" >&2
        diff <(unzip -v "$out/$name") <(unzip -v "$again/$name") >&2 || true
        return 1
    fi
    cat "$out/$name.sha256"
}
