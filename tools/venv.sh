#!/usr/bin/env bash
# Create or renew a virtual environment: tools/venv.sh <folder> <requirements> [lowest]
#
# Installs the pinned packages and this project (editable), finds or installs Java, and writes
# <folder>/java-home and, last, <folder>/ready, by which make knows that all of it is done.
# PYTHON names the interpreter to use; without it, the first suitable one on the PATH is taken.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$1
requirements=$2
highest=99
candidates="python3 python3.13 python3.12 python3.11 python3.10"
if [[ ${3:-} == lowest ]]; then
    highest=12 # the lowest versions of NumPy and pandas have no builds for later Pythons
    candidates="python3.10 python3.11 python3.12 python3"
fi

suitable() {
    "$1" -c "import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, $highest))" \
        >/dev/null 2>&1
}

java_home=$(tools/java.sh)

if ! suitable "$folder/bin/python"; then
    python=
    for candidate in ${PYTHON:-$candidates}; do
        if suitable "$candidate"; then
            python=$candidate
            break
        fi
    done
    if [[ -z $python ]]; then
        wanted="3.10 or newer"
        [[ $highest == 99 ]] || wanted="3.10 to 3.$highest"
        echo "Sterna needs Python $wanted with its venv module (Debian: python3-venv); name one with PYTHON=/path/to/python." >&2
        exit 1
    fi
    rm -rf "$folder"
    "$python" -m venv "$folder"
fi

# setuptools is among the pinned packages, so that the editable install fetches nothing.
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .

echo "$java_home" >"$folder/java-home"
touch "$folder/ready"
