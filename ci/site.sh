#!/usr/bin/env bash
# Builds the documents as one static folder, target/site/book: search, light and dark, and a report to play with. Fails if a link leads
# nowhere.
#
# usage: ci/site.sh     (mdbook is built once, below target/tools)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=0.4.52
tools=target/tools/mdbook-$version
if [[ ! -x $tools/bin/mdbook ]]; then
    echo "site: building mdbook $version, once" >&2
    cargo install --quiet --locked --root "$tools" --target-dir "$tools/build" --no-default-features --features search \
        "mdbook@$version"
    rm -rf "$tools/build"
fi
rm -rf target/site
mkdir -p target/site/src
python3 ci/site.py target/site/src
cargo build --quiet --locked -p pinbuddy-tools
target/debug/pinbuddy-tools trace variable-lengths --steps 12 --out target/site
(cd target/site && ../debug/pinbuddy-tools report variable-lengths.jsonl --out src/docs/pool.html)
cat >target/site/book.toml <<'TOML'
[book]
title = "pinbuddy"
language = "en"

# A README keeps its name, so that links to it hold.
[build]
use-default-preprocessors = false

[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
additional-css = ["phone.css"]

[output.html.print]
enable = false
TOML
echo '@media (max-width: 600px) { .table-wrapper :is(td, th) { padding: 3px 6px } }' >target/site/phone.css
"$tools/bin/mdbook" build target/site
python3 ci/site.py --check target/site/book
echo "site: target/site/book/index.html"
