#!/usr/bin/env bash
# A tag or branch of PyTorch, without its history and without the files that nothing here reads.
#
# usage: ci/upstream-checkout.sh REF DIR PATTERN...     (patterns as in .gitignore, from the root)
set -euo pipefail

ref=$1 folder=$2
shift 2
if [[ ! -d $folder/.git ]]; then
    git clone --quiet --depth 1 --filter=blob:none --no-checkout --branch "$ref" \
        "${PYTORCH_REPOSITORY:-https://github.com/pytorch/pytorch}" "$folder"
else
    git -C "$folder" fetch --quiet --depth 1 origin "$ref"
fi
git -C "$folder" sparse-checkout set --no-cone "$@"
if git -C "$folder" rev-parse --quiet --verify FETCH_HEAD >/dev/null; then
    git -C "$folder" checkout --quiet --detach FETCH_HEAD
else
    git -C "$folder" checkout --quiet
fi
echo "$folder: $ref is $(git -C "$folder" rev-parse HEAD)"
