"""The other ways to write a net down; each keeps on the layers what they stand for.

How layers are re-registered belongs into `rewiring`, what is true of two nets into `ground_truth`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import nn

from alignbed import blocks, leaves, names, wrappers

# Gets a marked copy of the reference and how often each layer runs in a pass; gives the port, or
# None for a net that has nothing of the kind.
Build = Callable[[nn.Module, Mapping[str, int]], nn.Module | None]


@dataclass(frozen=True)
class Mutation:
    """One other way to write a net down.

    Attributes:
        name: as the table shows it.
        build: makes the port.
        prepare: done to the reference beforehand.
        values_only: whether values alone tell which layer is which, so that different weights
            leave no truth to be found.
        passes: how many passes of the reference and of the port share the batch.
    """

    name: str
    build: Build
    prepare: Callable[[nn.Module], None] | None = None
    values_only: bool = False
    passes: tuple[int, int] = (1, 1)

    def port(self, reference: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
        """The port of a marked reference, which stays as it is."""
        return self.build(copy.deepcopy(reference), calls)


def _same(net: nn.Module, calls: Mapping[str, int]) -> nn.Module:
    return net


def _then(*builds: Build) -> Build:
    """One mutation after the other; None where the first does not apply."""

    def build(net: nn.Module, calls: Mapping[str, int]) -> nn.Module | None:
        found: nn.Module | None = net
        for one in builds:
            if found is None:
                return None
            found = one(found, calls)
        return found

    return build


MUTATIONS: tuple[Mutation, ...] = (
    Mutation("same", _same),
    Mutation("two passes", _same, passes=(2, 2)),
    Mutation("two passes against one", _same, passes=(1, 2)),
    Mutation("renamed", names.arbitrary),
    Mutation("renamed two passes", names.arbitrary, passes=(2, 2)),
    Mutation("renamed containers", names.containers),
    Mutation("renamed leaves", names.leaves),
    Mutation("defined in reverse", names.defined_in_reverse),
    Mutation("defined in reverse renamed", _then(names.defined_in_reverse, names.arbitrary)),
    Mutation("two defined in reverse", names.two_defined_in_reverse),
    Mutation("module wrapper", wrappers.named("module")),
    Mutation("_backbone wrapper", wrappers.named("_backbone")),
    Mutation("other wrapper", wrappers.named("inner")),
    Mutation("two wrappers", wrappers.named("network", "_backbone")),
    Mutation("wrapper renamed", _then(names.arbitrary, wrappers.named("inner"))),
    Mutation("DataParallel", wrappers.data_parallel),
    Mutation("torch.compile", wrappers.compiled),
    Mutation("blocks nested", blocks.nested),
    Mutation("blocks nested renamed", _then(blocks.nested, names.arbitrary)),
    Mutation("blocks regrouped", blocks.regrouped),
    Mutation("containers flattened", blocks.flattened),
    Mutation("containers flattened renamed", _then(blocks.flattened, names.arbitrary)),
    Mutation("lists flattened", blocks.lists_flattened),
    Mutation("last block missing", blocks.missing(-1)),
    Mutation("middle block missing", blocks.missing(None), values_only=True),
    Mutation("middle block missing, numbers kept", blocks.missing(None, renumber=False)),
    Mutation(
        "middle block missing renamed",
        _then(blocks.missing(None), names.arbitrary),
        values_only=True,
    ),
    Mutation("extra block last", blocks.extra(last=True)),
    Mutation("extra block in the middle", blocks.extra(last=False), values_only=True),
    Mutation("equal blocks", _same, blocks.make_equal),
    Mutation("equal blocks renamed", names.arbitrary, blocks.make_equal),
    Mutation("equal blocks nested", blocks.nested, blocks.make_equal),
    Mutation("blocks run swapped", blocks.run_swapped),
    Mutation(
        "blocks run swapped renamed",
        _then(blocks.run_swapped, names.arbitrary),
        values_only=True,
    ),
    Mutation("blocks defined and run swapped", blocks.defined_and_run_swapped),
    Mutation("pool before activation", leaves.pool_before_activation),
    Mutation("functional activations", leaves.functional(activations_only=True)),
    Mutation("functional without parameters", leaves.functional(activations_only=False)),
    Mutation(
        "functional renamed", _then(leaves.functional(activations_only=True), names.arbitrary)
    ),
    Mutation("identities", leaves.identities),
    Mutation("identities renamed", _then(leaves.identities, names.arbitrary)),
    Mutation("flatten as a layer", leaves.flatten_layer),
    Mutation("a layer for every call", leaves.unshared),
    Mutation("a layer for every call renamed", _then(leaves.unshared, names.arbitrary)),
    Mutation("a layer for every call two passes", leaves.unshared, passes=(2, 2)),
    Mutation("norms folded", leaves.norms_folded),
    Mutation("norms folded renamed", _then(leaves.norms_folded, names.arbitrary)),
    Mutation("projections fused", leaves.fused("")),
    Mutation("projections fused, odd name", leaves.fused("mixed"), values_only=True),
    Mutation("projections fused renamed", _then(leaves.fused(""), names.containers)),
)
