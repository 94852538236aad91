"""Finds mapping entries by the names that people write; what an entry holds is in `entry`."""

from __future__ import annotations

import difflib
from functools import lru_cache

from paritydbg.apimap.entry import ApiEntry, Convention
from paritydbg.apimap.tables import entries

# Where a name without a package may live, in the order in which people mean it.
_HOMES = (
    "torch.nn.",
    "torch.nn.functional.",
    "torch.",
    "torch.Tensor.",
    "torch.optim.",
    "torch.optim.lr_scheduler.",
    "torch.nn.utils.",
    "torch.amp.",
    "torch.utils.data.",
    "torch.distributed.",
    "torch.linalg.",
    "torchvision.transforms.",
)
_SHORT_PACKAGES = {"F.": "torch.nn.functional.", "functional.": "torch.nn.functional."}

# Classes whose own name is not the public one, and layers that the tables list as functions.
_CLASS_FAMILIES = {
    "Dense": "Linear",
    "Conv1dTranspose": "ConvTranspose1d",
    "Conv2dTranspose": "ConvTranspose2d",
    "Conv3dTranspose": "ConvTranspose3d",
    "FastGelu": "GELU",
    "HSwish": "Hardswish",
    "HSigmoid": "Hardsigmoid",
    "HShrink": "Hardshrink",
    "SoftShrink": "Softshrink",
    "LRN": "LocalResponseNorm",
    "MAELoss": "L1Loss",
    "BiDense": "Bilinear",
    "RNNCell": "RNNCell",
    "SoftmaxCrossEntropyWithLogits": "CrossEntropyLoss",
}


def lookup(torch_api: str) -> ApiEntry | None:
    """The entry of a torch API, or None; ``Linear``, ``nn.Linear``, ``F.gelu`` are understood too."""
    table = entries()
    for name in _readings(torch_api.strip().removesuffix("()")):
        if name in table:
            return table[name]
    lowered = {name.lower(): name for name in reversed(table)}
    for name in _readings(torch_api.strip().removesuffix("()")):
        if name.lower() in lowered:
            return table[lowered[name.lower()]]
    return None


def similar(name: str, most: int = 5) -> tuple[str, ...]:
    """Torch APIs whose names come near, nearest first."""
    last = name.strip().rpartition(".")[2].lower()
    by_last: dict[str, list[str]] = {}
    for api in entries():
        by_last.setdefault(api.rpartition(".")[2].lower(), []).append(api)
    close = difflib.get_close_matches(last, by_last, n=most, cutoff=0.6)
    found = [api for key in close for api in _preferred(by_last[key])]
    return tuple(found[:most])


def conventions(torch_api: str) -> tuple[Convention, ...]:
    """The conventions of a torch API, none where it is unknown or has none."""
    entry = lookup(torch_api)
    return entry.conventions if entry else ()


def family(api_or_type: str) -> str:
    """The torch layer class that a layer of either framework stands for, ``""`` where it is none.

    ``mindspore.nn.Dense``, ``Dense``, ``mindspore.mint.nn.Linear`` and ``torch.nn.Linear`` all give
    ``Linear``. A dotted name from outside the frameworks is a person's own class: ``""``.
    """
    head, _, name = api_or_type.rpartition(".")
    if head and head.partition(".")[0] not in ("torch", "mindspore"):
        return ""
    # MindSpore's mint layers are classes named after their aclnn kernels: LayerNormExt.
    name = name.removesuffix("Ext")
    name = _CLASS_FAMILIES.get(name, name)
    return name if name in _layer_classes() else ""


def mindspore_apis(family_name: str) -> tuple[str, ...]:
    """Full names of the MindSpore layers of a family, best on CPU first."""
    entry = entries().get(f"torch.nn.{family_name}")
    return tuple(a.api for a in entry.alternatives) if entry else ()


@lru_cache(maxsize=1)
def _layer_classes() -> frozenset[str]:
    prefix = "torch.nn."
    names = (api.removeprefix(prefix) for api in entries() if api.startswith(prefix))
    return frozenset(name for name in names if "." not in name and name[:1].isupper())


def _readings(name: str) -> tuple[str, ...]:
    """The full names that a short one may stand for, likeliest first."""
    for short, full in _SHORT_PACKAGES.items():
        if name.startswith(short):
            return (full + name.removeprefix(short),)
    if name.startswith(("torch.", "torchvision.")):
        return (name,)
    return (name, *(home + name for home in _HOMES))


def _preferred(apis: list[str]) -> list[str]:
    """The APIs of one last name in the order of their homes."""

    def rank(api: str) -> int:
        home = api.rpartition(".")[0] + "."
        return _HOMES.index(home) if home in _HOMES else len(_HOMES)

    return sorted(apis, key=rank)
