#!/usr/bin/env bash
# Builds a fork wheel twice from scratch, and fails if the bytes differ. Writes its hash and its bill of materials
# beside it.
#
# usage: ci/release-wheel.sh TORCH PYTHON [DIR]     (default: target/release-wheels)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

torch=$1 python=$2 out=${3:-target/release-wheels}
again=$(mktemp --directory)
trap 'rm -rf "$again"' EXIT
mkdir -p "$out"

rm -rf target/wheel/cargo
cargo xtask build-wheel --torch "$torch" --python "$python" --out "$out" --json >"$again/first.json"
rm -rf target/wheel/cargo
cargo xtask build-wheel --torch "$torch" --python "$python" --out "$again"

wheel=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["path"])' "$again/first.json")
name=$(basename "$wheel")
if ! cmp "$out/$name" "$again/$name"; then
    echo "release-wheel: two builds of $name differ in:" >&2
    diff <(unzip -v "$out/$name") <(unzip -v "$again/$name") >&2 || true
    exit 1
fi
(cd "$out" && sha256sum "$name" >"$name.sha256")
python3 - "$out/$name" "$out/${name%.whl}.cdx.json" <<'PYTHON'
import sys
import zipfile

wheel, bill = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    [entry] = [it for it in archive.namelist() if it.endswith("/sboms/pinbuddy.cdx.json")]
    open(bill, "wb").write(archive.read(entry))
PYTHON
cat "$out/$name.sha256"
