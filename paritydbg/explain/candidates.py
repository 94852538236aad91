"""What to write in the port instead: MindSpore APIs of the mapping table for the layer of a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from importlib.util import find_spec

from paritydbg.adapters import load_adapter
from paritydbg.apimap.entry import Alternative, ApiEntry
from paritydbg.apimap.lookup import lookup
from paritydbg.errors import AdapterError, UsageError
from paritydbg.explain.candidate_code import code_for, optimizer_code
from paritydbg.explain.context import Context
from paritydbg.explain.reading import family_of, flavour_of
from paritydbg.model.event import Role
from paritydbg.model.finding import Candidate, Finding, Stage
from paritydbg.model.record import LayerRecord

Exists = Callable[[str], bool | None]

# Causes in code that is no layer of its own -> the torch function that is meant.
_FUNCTIONS = {
    "gelu-approximate-default": "torch.nn.functional.gelu",
    "quickgelu": "torch.nn.functional.gelu",
    "leakyrelu-slope-default": "torch.nn.functional.leaky_relu",
    "elu-alpha": "torch.nn.functional.elu",
    "softmax-axis": "torch.nn.functional.softmax",
    "layernorm-eps-default": "torch.nn.functional.layer_norm",
    "avgpool-count-include-pad": "torch.nn.functional.avg_pool2d",
    "maxpool-same-vs-symmetric-padding": "torch.nn.functional.max_pool2d",
    "resize-align-corners": "torch.nn.functional.interpolate",
    "resize-half-pixel-centers": "torch.nn.functional.interpolate",
    "std-ddof-default": "torch.std",
    "kldiv-reduction": "torch.nn.functional.kl_div",
    "label-smoothing": "torch.nn.functional.cross_entropy",
    "loss-denominator-ignore-index": "torch.nn.functional.cross_entropy",
    "smoothl1-beta": "torch.nn.functional.smooth_l1_loss",
}
_LAYER_STAGES = (Stage.FORWARD, Stage.BACKWARD, Stage.RUNNING_STATS, Stage.STRUCTURE, Stage.CONFIG)
# Causes that another layer would not cure.
_NOT_OF_THE_LAYER = frozenset(
    ("train-mode-not-set", "eval-mode-not-set", "stop-gradient-extra", "stop-gradient-missing")
    + ("parameter-frozen", "parameter-not-frozen", "missing-blocks", "extra-blocks")
    + ("weight-tying-lost", "weight-shared-wrongly", "parameter-became-constant")
    + ("parameter-not-registered", "gradient-scaled", "gradient-accumulated-twice")
)
# Causes that another optimizer cures.
_OF_THE_OPTIMIZER = frozenset(
    ("adam-bias-correction-missing", "adam-eps-placement", "adamw-vs-l2-adam")
    + ("rmsprop-eps-inside-sqrt", "rmsprop-centered", "optimizer-state-init", "nesterov-ignored")
    + ("dampening", "momentum-convention", "optimizer-step-is-noop")
)
_MOST = 3


def candidates(
    finding: Finding, context: Context, exists: Exists | None = None
) -> tuple[Candidate, ...]:
    """Replacements for the finding's layer, best first; none without a kernel on the port's device.

    Args:
        exists: tells whether the installed MindSpore has an API; asked of the hook package if left
            out, which imports MindSpore where it is installed.
    """
    on_cpu = context.port.run.environment.device.lower().startswith("cpu")
    found = tuple(_proposals(finding, context, on_cpu))[:_MOST]
    if not found:
        return ()
    asked = exists or installed_has
    made = (
        Candidate(
            api=alternative.api,
            code=code,
            differs=_differs(entry, alternative),
            exists=asked(alternative.api),
            runs_here=_runs(alternative) if on_cpu else None,
            note=_note(alternative),
        )
        for entry, alternative, code in found
    )
    return tuple(candidate for candidate in made if candidate.exists is not False)


def _proposals(
    finding: Finding, context: Context, on_cpu: bool
) -> Iterator[tuple[ApiEntry, Alternative, str]]:
    """Entry, MindSpore API and code of everything worth proposing."""
    slugs = [cause.slug for cause in finding.causes]
    if finding.stage is Stage.UPDATE:
        if slugs and slugs[0] in _OF_THE_OPTIMIZER:
            yield from _optimizers(context, on_cpu)
        return
    if slugs and slugs[0] in _NOT_OF_THE_LAYER:
        return
    reference = context.owner(finding.place) if finding.stage in _LAYER_STAGES else None
    is_layer = reference is not None and not finding.place.startswith(("before ", "after "))
    kind = family_of(reference) if reference is not None and is_layer else ""
    if reference is not None and kind and flavour_of(reference) == "torch":
        entry = lookup(f"torch.nn.{kind}")
        if entry is not None:
            axes = _input_axes(reference, finding, context)
            coded = [(a, code_for(a.api, reference, axes)) for a in _usable(entry, on_cpu)]
            # A line to paste says more than a name; what cannot do the job is no candidate.
            known = [one for one in coded if one[1]] or coded
            yield from ((entry, a, code) for a, code in known if code is not None)
        return
    for cause in finding.causes:
        entry = lookup(_FUNCTIONS[cause.slug]) if cause.slug in _FUNCTIONS else None
        if entry is not None:
            for alternative in _usable(entry, on_cpu):
                yield entry, alternative, ""
            return


def _input_axes(layer: LayerRecord, finding: Finding, context: Context) -> int | None:
    """The number of axes of what the layer was fed."""
    for comparison in context.comparisons_of(layer.name, Role.INPUT, finding.step):
        return len(comparison.pair.first.shape)
    return None


def _usable(entry: ApiEntry, on_cpu: bool) -> Iterable[Alternative]:
    """Alternatives that may be proposed, layers before functions among equals."""
    usable = [a for a in entry.alternatives if not (on_cpu and a.ran in ("no-kernel", "differs"))]
    # What was tried on the CPU says nothing of other devices.
    matching = [a for a in usable if a.ran == "matches"] if on_cpu else usable
    return sorted(matching or usable, key=lambda a: (".nn." not in a.api, ".mint." in a.api))


def _optimizers(context: Context, on_cpu: bool) -> Iterator[tuple[ApiEntry, Alternative, str]]:
    for record in context.reference.run.optimizers:
        entry = lookup(f"torch.optim.{record.type}")
        if entry is None or not record.api.startswith("torch."):
            continue
        used = {other.api for other in context.port.run.optimizers}
        told = dict(record.groups[0]) if record.groups else {}
        usable = [a for a in _usable(entry, on_cpu) if a.api not in used]
        if told.get("nesterov"):
            usable = [a for a in usable if not a.api.endswith(".Momentum")]
        coded = [(a, optimizer_code(a.api, record.type, told)) for a in usable]
        coded.sort(key=lambda one: not one[1])
        for alternative, code in coded[:2]:
            yield entry, alternative, code
        return


def _differs(entry: ApiEntry, alternative: Alternative) -> tuple[str, ...]:
    """Defaults, names and conventions in which the API differs from torch's."""
    found = [str(default) for default in alternative.defaults]
    if alternative.primary:
        found += [f"{old} is called {new}" for old, new in entry.renamed]
    found += [
        f"{c.torch_parameter}: {c.conversion}"
        for c in entry.conventions
        if c.mindspore_api == alternative.api and c.verified and c.conversion != "none"
    ]
    return tuple(dict.fromkeys(found))[:4]


def _runs(alternative: Alternative) -> bool | None:
    return {"matches": True, "no-kernel": False}.get(alternative.ran)


def _note(alternative: Alternative) -> str:
    if alternative.ran == "matches":
        return "gave torch's values on CPU when the mapping table was made"
    if alternative.problem:
        return f"differs on CPU: {alternative.problem}"
    no_kernel = alternative.ran == "no-kernel"
    return "has no kernel on CPU; not tried on this device" if no_kernel else ""


@lru_cache(maxsize=256)
def installed_has(api: str) -> bool | None:
    """Whether the installed MindSpore has the API; None where there is no MindSpore to ask."""
    if find_spec("mindspore") is None:
        return None
    try:
        return load_adapter("mindspore").api_exists(api)
    except (AdapterError, UsageError):
        return None
