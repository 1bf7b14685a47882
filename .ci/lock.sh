#!/bin/sh
# Resolve the locks anew from pyproject.toml: every file's hash, for every system, and no download address.
set -eu
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
.venv/bin/python -m venv "$tools"
"$tools/bin/python" -m pip install --quiet --disable-pip-version-check uv

resolve() {
    lock=$1
    shift
    "$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
        --no-emit-index-url "$@" --output-file "requirements/$lock.txt" pyproject.toml
    echo "requirements/$lock.txt"
}

resolve production
resolve local --extra embedded
resolve dev --extra embedded --extra dev --extra browser
