# Sourced by the other scripts: makes .venv in the checkout on first use and puts it first on the path.
# Needs a Python from 3.10 to 3.12; PYTHON names one where the guess is wrong.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3.12 python3.11 python3.10 python3 python; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 13))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "no Python from 3.10 to 3.12 was found; name one: PYTHON=/path/to/python3.11 $0" >&2
    return 1
}

# The stamp is written last, so that an installation that was cut short is done again; it is older
# than the files that decide what is installed when those change.
stamp=.venv/installed
if [ ! -f "$stamp" ] || [ pyproject.toml -nt "$stamp" ] || [ constraints.txt -nt "$stamp" ]; then
    python=$(find_python)
    echo "making .venv with $("$python" --version) (PyTorch and MindSpore: some minutes, about 2 GB)" >&2
    [ -x .venv/bin/python ] || "$python" -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check \
        --constraint constraints.txt --editable '.[torch,mindspore,dev]'
    touch "$stamp"
fi

VIRTUAL_ENV="$PWD/.venv"
PATH="$VIRTUAL_ENV/bin:$PATH"
export VIRTUAL_ENV PATH
unset PYTHONHOME
# MindSpore's own log, down to errors.
export GLOG_v="${GLOG_v:-3}"
