#!/usr/bin/env bash
# Sourced by what builds wheels for a release: builds one twice from scratch, and fails if the bytes differ. Writes its
# bill of materials beside it and beside the hash that the build writes.
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
    python3 - "$out/$name" "$out/${name%.whl}.cdx.json" <<'PYTHON'
import sys
import zipfile

wheel, bill = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    [entry] = [it for it in archive.namelist() if it.endswith("/sboms/pinbuddy.cdx.json")]
    open(bill, "wb").write(archive.read(entry))
PYTHON
    cat "$out/$name.sha256"
}
