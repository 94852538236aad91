"""Findings: what a report says is wrong, where, why, and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from paritydbg.model.closeup import Closeup
from paritydbg.model.comparison import Comparison, Verdict
from paritydbg.model.event import Phase
from paritydbg.model.record import Attribute
from paritydbg.model.trial import TrialOutcome


class Stage(str, Enum):
    """The rung of the ladder on which values first part."""

    INPUT_DATA = "input-data"
    CONFIG = "config"
    STRUCTURE = "structure"
    WEIGHTS = "weights"
    FORWARD = "forward"
    LOSS = "loss"
    BACKWARD = "backward"
    RUNNING_STATS = "running-stats"
    LOSS_SCALE = "loss-scale"
    UPDATE = "update"
    STATE = "state"
    DISTRIBUTED = "distributed"
    TOOL_USAGE = "tool-usage"
    NONE = "none"


@dataclass(frozen=True)
class AttributeDifference:
    """One attribute that the two layers of a pair do not share, after conventions are converted.

    Attributes:
        name: the reference's name of it; ``port_name`` the port's.
        reference, port: as each side has it.
        expected: what the port should have, in the port's convention.
        cause: slug from the vocabulary of causes, ``""`` if none fits.
        changes: what it changes: ``forward``, ``backward``, ``running-stats`` …, ``""`` if unknown.
    """

    name: str
    reference: Attribute
    port: Attribute
    port_name: str = ""
    expected: Attribute = None
    cause: str = ""
    changes: str = ""


@dataclass(frozen=True)
class Cause:
    """A reason for a finding: slug, a sentence, the evidence for it, and how sure it is (0 to 1)."""

    slug: str
    summary: str
    evidence: str = ""
    confidence: float = 0.0


@dataclass(frozen=True)
class Candidate:
    """What could be written in the port instead.

    Attributes:
        api: full MindSpore name.
        code: a line to paste, with the layer's own values filled in.
        differs: what differs from the torch API (defaults, parameter names), in words.
        exists: in the installed MindSpore; None where MindSpore is not installed.
        runs_here: on this device by the verified table; None where unknown.
        note: source or caution.
        trial: how it did on the captured tensors, None where it was not tried.
    """

    api: str
    code: str = ""
    differs: tuple[str, ...] = ()
    exists: bool | None = None
    runs_here: bool | None = None
    note: str = ""
    trial: TrialOutcome | None = None


@dataclass(frozen=True)
class Finding:
    """One independent thing that is wrong.

    Attributes:
        stage: the rung.
        verdict: of the deciding event.
        place: the reference's name: ``layer4.1.bn2``, ``fc.weight``, ``loss``, ``step1``,
            ``step2:fc.weight``, ``state:ema``, ``inputs:x``, ``(net)``; what only the port has by its
            own name.
        port_place: the port's name for it.
        phase, step: of the deciding event.
        evidence: the deciding comparison, None for a static finding.
        inputs_agree: whether what came into the place agreed; None where that is not known.
        summary: the finding in a sentence.
        attributes: attribute differences of the two layers.
        causes: likely first.
        candidates: likely first.
        followers: how many events differ because of this one.
        static: known without a run (structure, attributes, weights).
        also: other places that share this finding, by the reference's names.
        closeup: the values of the deciding tensors in summary, None where there are none to look at.
    """

    stage: Stage
    verdict: Verdict
    place: str
    summary: str
    port_place: str = ""
    phase: Phase = Phase.FORWARD
    step: int = 1
    evidence: Comparison | None = None
    inputs_agree: bool | None = None
    attributes: tuple[AttributeDifference, ...] = ()
    causes: tuple[Cause, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    followers: int = 0
    static: bool = False
    also: tuple[str, ...] = ()
    closeup: Closeup | None = None
