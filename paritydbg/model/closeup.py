"""A closer look at the deciding tensors of a finding: how their values are spread, where they part most."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Histogram:
    """Counts of values in bins of one width.

    Attributes:
        low, high: the outer edges; equal where every value is the same.
        counts: values per bin, the last bin with its upper edge.
    """

    low: float
    high: float
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Element:
    """One element of two tensors, in the port's layout."""

    index: tuple[int, ...]
    reference: float
    port: float


@dataclass(frozen=True)
class Closeup:
    """The values of a deciding pair of tensors, in summary.

    Attributes:
        reference, port: histograms over the same bins, so that they lie on top of each other.
        difference: histogram of port - reference.
        worst: the elements that part most, worst first.
        looked_at: elements that the histograms count; what is not finite is left out.
        count: elements of the tensor.
    """

    reference: Histogram
    port: Histogram
    difference: Histogram
    worst: tuple[Element, ...]
    looked_at: int
    count: int
