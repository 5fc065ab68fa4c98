"""Stacks and their laws."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from . import _native
from .scenarios import ScenarioWarning, whole
from .tables import Table

#: Windows of :func:`law`, segments.
WINDOWS = (10.0, 38.0, 100.0, 1000.0, 10_000.0)


@dataclass(frozen=True)
class Stack:
    """A part of stacks: a law, a kernel module, a start-up, pacing."""

    name: str
    kind: str
    about: str


def stacks() -> list[Stack]:
    """Every part that a stack is composed of; `+` joins them: ``"cubic+hystart++"``."""
    return [Stack(*entry) for entry in _native.stacks()]


def law(
    stack: str,
    windows: Sequence[float] = WINDOWS,
    *,
    rtt: str = "100ms",
    mss: int = 1448,
    hz: int = 250,
) -> Table:
    """The settled cycle of a stack at each window, in segments: a(w) (``increase_last``), b(w)
    (``decrease``), round trips to recover, loss rate, mean window. NaN where there is
    none, with a :class:`ScenarioWarning` that says why.
    """
    mss, hz = whole("mss", mss, below=65_536), whole("hz", hz)
    try:
        windows = list(windows)
        known = all(4 <= window <= 1e7 for window in windows)
    except TypeError:
        known = False
    if not known:
        raise _native.ScenarioError(
            "error: `windows` is a list of numbers of segments, from 4 to 10000000"
        )
    table, without = _native.law(stack, windows, rtt=rtt, mss=mss, hz=hz)
    for window, why in without:
        warnings.warn(f"{stack}, window {window:g}: {why}", ScenarioWarning, stacklevel=2)
    return Table(table)
