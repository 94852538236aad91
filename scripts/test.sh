#!/usr/bin/env bash
# Lints, type-checks and tests; makes the environment on first use. Arguments go to pytest.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

ruff check .
ruff format --check .
mypy
python -m pytest "$@"
