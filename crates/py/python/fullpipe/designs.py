"""Points of a sweep that are no full product."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

from . import _native
from .scenarios import whole

#: How a quantity is written whose value is in the unit that :func:`_native.quantity` names.
UNITS = {
    "s": "{:.9g}s",
    "mbps": "{:.9g}Mbit/s",
    "bytes": "{:.0f} bytes",
    "packets": "{:.0f} packets",
    "segments": "{:.0f} segments",
    "bdp": "{:.9g}BDP",
}


def grid(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values of the axes; the last axis varies fastest."""
    points = itertools.product(*axes.values())
    return [dict(zip(axes, point, strict=True)) for point in points]


def latin_hypercube(
    ranges: Mapping[str, Sequence[Any]], points: int, *, seed: int = 1
) -> list[dict[str, Any]]:
    """``points`` points in which every axis has one value in each of as many equal slices of its
    range (McKay, Beckman and Conover, 1979), drawn from ``seed``.

    A range is ``(low, high)``, or ``(low, high, "log")`` for slices of equal ratio; its ends are
    numbers, or quantities of one unit: ``{"path.rate": ("10Mbit/s", "10Gbit/s", "log")}``. A range
    of two whole numbers gives whole numbers.
    """
    points = whole("points", points)
    draw = random.Random(whole("seed", seed, 0, 2**64))
    columns = []
    for key, given in ranges.items():
        low, high, unit, log = _range(key, given)
        slices = list(range(points))
        draw.shuffle(slices)
        parts = ((i + draw.random()) / points for i in slices)
        if log:
            values = [low * (high / low) ** part for part in parts]
        else:
            values = [low + (high - low) * part for part in parts]
        columns.append([_written(value, unit) for value in values])
    return [dict(zip(ranges, row, strict=True)) for row in zip(*columns, strict=True)]


def _range(key: str, given: Sequence[Any]) -> tuple[float, float, str, bool]:
    refused = _native.ScenarioError(
        f"error: `{key}`: a range is (low, high) or (low, high, 'log'), of one unit and rising"
        "; with 'log' from above zero"
    )
    if isinstance(given, str) or not 2 <= len(given) <= 3 or tuple(given[2:]) not in {(), ("log",)}:
        raise refused
    if all(isinstance(end, Integral) for end in given[:2]):
        low, high, unit = float(given[0]), float(given[1]), "whole"
    else:
        ends = [_native.quantity(str(end)) for end in given[:2]]
        if ends[0] is None or ends[1] is None or ends[0][1] != ends[1][1]:
            raise refused
        (low, unit), (high, _) = ends[0], ends[1]
    log = len(given) == 3
    if not low < high or log and low <= 0 or not math.isfinite(high):
        raise refused
    return low, high, unit, log


def _written(value: float, unit: str) -> Any:
    if unit == "whole":
        return round(value)
    return UNITS[unit].format(value) if unit else float(f"{value:.9g}")
