#!/usr/bin/env bash
# The main job on a sample pair: records the original, records a port that carries a fault, and asks
# where they part. Makes the environment on first use. Usage: scripts/demo.sh [PAIR [FAULT]]
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

pair=${1:-bert}
fault=${2:-}
if [ -z "$fault" ]; then
    fault=$(python -c "import importlib; print(importlib.import_module('sample_nets.$pair.faults').FAULTS[0].name)")
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
reference="$PWD/scripts/train_torch.py" port="$PWD/scripts/train_mindspore.py"

step() {
    printf '\n$ %s\n' "$*"
    "$@"
}

cd "$folder"
step paritydbg run -o ref.h5 -- python "$reference" "$pair" --steps 2
step paritydbg run -o port.h5 --weights-from ref.h5 --inputs-from ref.h5 \
    -- python "$port" "$pair" --fault "$fault" --steps 2
# Exit code 1 says that a divergence was found: here it must be.
code=0
step paritydbg bisect ref.h5 port.h5 || code=$?
[ "$code" -eq 1 ] || { echo "demo: bisect ended with $code, not with a finding" >&2; exit 2; }
printf '\nThe fault put into the port: %s\n' "$fault"
