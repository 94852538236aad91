"""What the layers' records tell of attention, with the usual values behind it."""

from __future__ import annotations

from dataclasses import dataclass

from paritydbg.explain.causes.site import Site
from paritydbg.explain.context import Context, layer_part
from paritydbg.model.finding import Finding

_HEADS = (8, 12, 4, 16, 2, 6, 32, 1, 3, 24, 20, 64)
_HEAD_NAMES = ("num_heads", "n_heads", "num_attention_heads", "heads", "nhead", "n_head", "h")
_THETA_NAMES = ("rope_theta", "theta", "rotary_base", "base")
_SCALE_NAMES = ("scale", "scaling", "softmax_scale")
_THETAS = (10000.0, 500000.0, 1000000.0)
_SCALES = ("head", "width", "none", "head-squared")


@dataclass(frozen=True)
class KnownSettings:
    """Settings that the layers' records tell, likeliest first."""

    heads: tuple[int, ...]
    thetas: tuple[float, ...]
    scales: tuple[str, ...]

    @staticmethod
    def of(finding: Finding, context: Context, site: Site) -> KnownSettings:
        heads: list[int] = []
        thetas: list[float] = []
        scales: list[str] = []
        name = layer_part(finding.place)
        while True:
            for layer in (context.layer(name), context.partner(name)):
                told = dict(layer.attributes) if layer is not None else {}
                heads += [v for n in _HEAD_NAMES if isinstance(v := told.get(n), int) and v > 0]
                thetas += [
                    float(v)
                    for n in _THETA_NAMES
                    if isinstance(v := told.get(n), (int, float)) and v > 1
                ]
                for n in _SCALE_NAMES:
                    value = told.get(n)
                    if isinstance(value, (int, float)) and value > 0:
                        scales += [repr(float(value)), repr(1 / float(value))]
            if not name:
                break
            name = name.rpartition(".")[0]
        width = site.port.shape[-1]
        heads += [h for h in _HEADS if width % h == 0 or site.port.ndim == 4]
        if site.port.ndim == 4:
            heads.insert(0, site.port.shape[1])
        return KnownSettings(
            tuple(dict.fromkeys(heads)),
            tuple(dict.fromkeys((*thetas, *_THETAS))),
            tuple(dict.fromkeys((*_SCALES, *scales))),
        )
