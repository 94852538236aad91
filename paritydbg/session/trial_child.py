"""The process in which trials are run: reads them from a folder, leaves each result there at once."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from paritydbg.adapters import load_adapter
from paritydbg.model.record import Attribute, LayerRecord, ParameterRecord
from paritydbg.model.trial import Call, Trial, TrialResult
from paritydbg.session.trial_runner import MAPPINGS
from paritydbg.weights.archives import read_npz, write_npz


def main(framework: str, folder: str, first: str, last: str) -> None:
    """Run the trials ``first`` to ``last`` - 1."""
    adapter = load_adapter(framework)
    for number in range(int(first), int(last)):
        trial = _read(folder, number)
        try:
            result = adapter.run_trial(trial)
        # Whatever a candidate raises is its result: the others go on.
        except Exception as error:  # noqa: BLE001 (the top of a process)
            lines = [line for line in str(error).strip().splitlines() if line.strip(" -")]
            result = TrialResult(
                error=f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
            )
        _write(result, folder, number)


def _read(folder: str, number: int) -> Trial:
    with open(os.path.join(folder, f"trial{number}.json"), encoding="utf-8") as file:
        told = json.load(file)
    path = os.path.join(folder, f"trial{number}.npz")
    arrays = read_npz(path)
    parts: dict[str, dict[str, Any]] = {}
    for key, array in arrays.items():
        name, _, rest = key.partition("/")
        parts.setdefault(name, {})[rest] = array
    return Trial(
        _call(told["call"]),
        None if told["layer"] is None else LayerRecord(**_tuples(told["layer"])),
        tuple(ParameterRecord(**_tuples(one)) for one in told["parameters"]),
        parts.get("values", {}),
        parts.get("inputs", {}),
        parts.get("grad_outputs", {}),
        parts.get("gradients", {}),
        told["training"],
    )


def _call(told: Mapping[str, Any]) -> Call:
    keywords = tuple((str(key), _tuple(value)) for key, value in told["keywords"])
    arguments = tuple(_tuple(one) for one in told["arguments"])
    return Call(told["api"], arguments, keywords, told["of_parameters"])


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _tuple(value) for key, value in fields.items()}


def _tuple(value: Any) -> Attribute:
    """JSON's lists as the tuples that they were."""
    return tuple(_tuple(one) for one in value) if isinstance(value, list) else value


def _write(result: TrialResult, folder: str, number: int) -> None:
    arrays = {}
    for name in MAPPINGS:
        for key, array in getattr(result, name).items():
            arrays[f"{name}/{key}"] = np.asarray(array)
    if not result.error:
        write_npz(os.path.join(folder, f"result{number}.npz"), arrays)
    with open(os.path.join(folder, f"result{number}.json"), "w", encoding="utf-8") as file:
        json.dump({"error": result.error}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
