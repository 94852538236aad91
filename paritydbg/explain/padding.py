"""Padding as every layer means it, one (before, after) pair per spatial axis, whatever its own spelling."""

from __future__ import annotations

from dataclasses import dataclass

from paritydbg.apimap.lookup import family
from paritydbg.explain.reading import UNKNOWN, Meaning
from paritydbg.model.record import Attribute, LayerRecord

Numbers = tuple[int, ...]


@dataclass(frozen=True)
class SamePadding:
    """``same`` padding, whose amounts follow from the input's size where the stride exceeds 1.

    Attributes:
        reach: dilation * (kernel - 1) + 1 per axis.
        stride: per axis.
    """

    reach: Numbers
    stride: Numbers

    def possible(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Per axis the (before, after) pairs that some input size leads to.

        The total is max((ceil(n/s) - 1)*s + reach - n, 0), so reach - s where s divides n and
        reach - r for a remainder r; the odd one goes behind.
        """
        found = []
        for reach, stride in zip(self.reach, self.stride, strict=True):
            totals = {max(reach - rest, 0) for rest in range(1, stride + 1)}
            found.append(tuple((total // 2, total - total // 2) for total in sorted(totals)))
        return tuple(found)


def axes_of(record: LayerRecord) -> int:
    """The number of spatial axes in a layer's class name: 2 for ``Conv2d``; 0 where it has none."""
    name = family(record.api) or family(record.type)
    return int(name[-2]) if name[-1:] == "d" and name[-2:-1].isdigit() else 0


def per_axis(value: Attribute, axes: int) -> Numbers | None:
    """A size per spatial axis; MindSpore's one-dimensional layers put further axes in front."""
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,) * axes
    if isinstance(value, tuple) and value and all(isinstance(v, int) for v in value):
        numbers = tuple(int(v) for v in value if isinstance(v, int))
        if len(numbers) == 1:
            return numbers * axes
        if len(numbers) >= axes:
            return numbers[len(numbers) - axes :]
    return None


def torch_pads(record: LayerRecord) -> Meaning:
    """The padding of torch's convolutions and pools (and of mint's, which are spelt alike)."""
    axes = axes_of(record)
    padding = record.attribute("padding")
    reach, stride = _reach(record, axes), _stride(record, axes)
    if padding == "same":
        return _same(reach, stride) if reach and stride else UNKNOWN
    if padding == "valid":
        return ((0, 0),) * axes
    amounts = per_axis(padding, axes)
    return tuple((p, p) for p in amounts) if amounts else UNKNOWN


def mindspore_pads(record: LayerRecord) -> Meaning:
    """The padding of mindspore.nn's convolutions and pools."""
    axes = axes_of(record)
    mode = str(record.attribute("pad_mode", "")).lower()
    if mode == "valid":
        return ((0, 0),) * axes
    if mode == "same":
        reach, stride = _reach(record, axes), _stride(record, axes)
        return _same(reach, stride) if reach and stride else UNKNOWN
    if mode != "pad":
        return UNKNOWN
    if "Pool" in record.type:
        amounts = per_axis(record.attribute("padding"), axes)
        return tuple((p, p) for p in amounts) if amounts else UNKNOWN
    return _sides(record.attribute("padding"), axes) or UNKNOWN


def torch_transposed_pads(record: LayerRecord) -> Meaning:
    """What a transposed convolution cuts off: ``output_padding`` takes from the far edge's padding."""
    axes = axes_of(record)
    padding = per_axis(record.attribute("padding"), axes)
    extra = per_axis(record.attribute("output_padding", 0), axes)
    if padding is None or extra is None:
        return UNKNOWN
    return tuple((p, p - more) for p, more in zip(padding, extra, strict=True))


def mindspore_transposed_pads(record: LayerRecord) -> Meaning:
    """What mindspore.nn's transposed convolutions cut off; ``same`` makes the output n * stride long."""
    axes = axes_of(record)
    mode = str(record.attribute("pad_mode", "")).lower()
    reach, stride = _reach(record, axes), _stride(record, axes)
    if reach is None or stride is None:
        return UNKNOWN
    if mode == "same":
        totals = tuple(max(r - s, 0) for r, s in zip(reach, stride, strict=True))
        return tuple((total // 2, total - total // 2) for total in totals)
    if mode == "valid":
        # A stride beyond the kernel lengthens MindSpore's output; torch would say output_padding.
        return tuple((0, min(r - s, 0)) for r, s in zip(reach, stride, strict=True))
    sides = _sides(record.attribute("padding"), axes)
    extra = per_axis(record.attribute("output_padding", 0), axes)
    if sides is None or extra is None:
        return UNKNOWN
    return tuple((pair[0], pair[1] - more) for pair, more in zip(sides, extra, strict=True))


def pads_agree(left: Meaning, right: Meaning) -> bool | None:
    """Whether two paddings are the same; None where that hangs on the input's size."""
    if isinstance(left, SamePadding) and isinstance(right, SamePadding):
        return left == right
    if isinstance(right, SamePadding):
        left, right = right, left
    if not isinstance(left, SamePadding):
        return left == right
    if not isinstance(right, tuple) or len(right) != len(left.reach):
        return None
    could = [pair in options for pair, options in zip(right, left.possible(), strict=True)]
    if not all(could):
        return False
    return True if all(len(options) == 1 for options in left.possible()) else None


def write_torch_pads(meaning: Meaning, _record: LayerRecord) -> Attribute:
    """The ``padding`` argument in torch, the pairs themselves where torch has no word for them."""
    if isinstance(meaning, SamePadding):
        return "same"
    pairs = _pairs(meaning)
    if pairs is not None and all(before == after for before, after in pairs):
        return tuple(before for before, _ in pairs)
    return pairs


def write_mindspore_pads(meaning: Meaning, _record: LayerRecord) -> Attribute:
    """(``pad_mode``, ``padding``) for mindspore.nn: one number, or before and after axis by axis."""
    if isinstance(meaning, SamePadding):
        return ("same", 0)
    pairs = _pairs(meaning)
    if pairs is None:
        return None
    sides = tuple(side for pair in pairs for side in pair)
    if any(side < 0 for side in sides):
        return None
    if not any(sides):
        return ("valid", 0)
    return ("pad", sides[0] if len(set(sides)) == 1 else sides)


def show_mindspore_pads(record: LayerRecord) -> Attribute:
    """(``pad_mode``, ``padding``) as the layer has them."""
    return (record.attribute("pad_mode"), record.attribute("padding", 0))


def _same(reach: Numbers, stride: Numbers) -> Meaning:
    """``same`` padding, resolved at once where the input's size plays no part."""
    same = SamePadding(reach, stride)
    options = same.possible()
    if all(len(pairs) == 1 for pairs in options):
        return tuple(pairs[0] for pairs in options)
    return same


def _sides(padding: Attribute, axes: int) -> tuple[tuple[int, int], ...] | None:
    """The padding of a MindSpore convolution: a number for all sides, or two per axis."""
    if isinstance(padding, tuple) and len(padding) >= 2 * axes:
        last = per_axis(padding, 2 * axes)
        return tuple(zip(last[::2], last[1::2], strict=True)) if last else None
    amounts = per_axis(padding, axes)
    return tuple((p, p) for p in amounts) if amounts else None


def _pairs(meaning: Meaning) -> tuple[tuple[int, int], ...] | None:
    """The (before, after) pairs in a meaning, None where it holds something else."""
    if not isinstance(meaning, tuple):
        return None
    found = []
    for pair in meaning:
        if not isinstance(pair, tuple) or len(pair) != 2:
            return None
        before, after = pair
        if not isinstance(before, int) or not isinstance(after, int):
            return None
        found.append((before, after))
    return tuple(found)


def _reach(record: LayerRecord, axes: int) -> Numbers | None:
    kernel = per_axis(record.attribute("kernel_size"), axes)
    dilation = per_axis(record.attribute("dilation", 1), axes)
    if kernel is None or dilation is None:
        return None
    return tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))


def _stride(record: LayerRecord, axes: int) -> Numbers | None:
    stride = record.attribute("stride", 1)
    return per_axis(record.attribute("kernel_size") if stride is None else stride, axes)
