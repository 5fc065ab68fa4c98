"""Figures for papers, with matplotlib: sizes in millimetres, text as text in PDF and SVG.

    fig = fp.plot.window(result, width=84)
    fig.savefig("window.pdf")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from .laws import law
from .results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Width of a column of two-column papers, millimetres.
COLUMN = 84.0
MM = 1 / 25.4

STYLE = {
    "font.size": 8,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.0,
}


def window(
    result: Result, case: int = 0, seed: int | None = None, *, width: float = COLUMN
) -> Figure:
    """The congestion window of every flow of a run over time."""
    trace = result.trace(case, seed)
    fig, axes = _figure(width, 0.55)
    time, cwnd, flows = trace["time_s"], trace["cwnd"], trace["flow"]
    for flow in dict.fromkeys(flows.tolist()):
        of = flows == flow
        axes.plot(time[of], cwnd[of], label=flow)
    axes.set(xlabel="time (s)", ylabel="window (segments)", ylim=(0, None))
    _legend(axes)
    return fig


def against(
    result: Result, metric: str, axis: str, *, by: str = "stack", width: float = COLUMN
) -> Figure:
    """A metric against a matrix parameter: the mean of the seeds, with the 95 % interval of the
    mean by Student's t; a line for each value of ``by``."""
    runs = result.runs
    numeric = [c for c in runs.columns if c == axis or c.startswith(f"{axis}_")]
    numbers = [c for c in numeric if runs[c].dtype.kind in "fi"]
    if not numbers:
        raise _native.FullpipeError(f"`{axis}` has no numbers\n  hint: {', '.join(runs.columns)}")
    x, y, series = runs[numbers[0]], runs[metric], runs[by]
    fig, axes = _figure(width, 0.6)
    for name in dict.fromkeys(series.tolist()):
        points, means, halves = [], [], []
        for point in np.unique(x[series == name]):
            values = y[(series == name) & (x == point)]
            values = values[~np.isnan(values)]
            if len(values):
                points.append(point)
                means.append(values.mean())
                halves.append(_half_width(values))
        axes.errorbar(points, means, yerr=halves, label=str(name), marker="o", ms=3, capsize=2)
    unit = numbers[0].removeprefix(axis).strip("_")
    axes.set(xlabel=f"{axis} ({unit})" if unit else axis, ylabel=metric)
    _legend(axes)
    return fig


def response(
    stacks: Sequence[str], *, rtt: str = "100ms", points: int = 12, width: float = COLUMN
) -> Figure:
    """Response functions: the mean window against the loss rate."""
    fig, axes = _figure(width, 0.7)
    windows = np.logspace(1, 5, points).tolist()
    for stack in stacks:
        cycles = law(stack, windows, rtt=rtt)
        axes.loglog(cycles["loss_rate"], cycles["mean_window"], label=stack, marker=".", ms=3)
    axes.set(xlabel="losses per segment", ylabel="mean window (segments)")
    _legend(axes)
    return fig


def _half_width(values: np.ndarray[Any, Any]) -> float:
    """Of the 95 % interval of a mean; zero for one value."""
    n = len(values)
    if n < 2:
        return 0.0
    quantile = T975[min(n - 1, len(T975)) - 1]
    return float(quantile * values.std(ddof=1) / np.sqrt(n))


#: Student's t, 97.5 %, for 1 to 30 degrees of freedom; with more the last is 4 % too wide at most.
T975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


def _figure(width: float, ratio: float) -> tuple[Figure, Axes]:
    try:
        import matplotlib as mpl
        from matplotlib import pyplot
    except ImportError:
        raise _native.FullpipeError(
            "figures need matplotlib\n  hint: pip install 'fullpipe[plot]'"
        ) from None
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        fig, axes = pyplot.subplots(
            figsize=(width * MM, width * ratio * MM), layout="constrained"
        )
    return fig, axes


def _legend(axes: Axes) -> None:
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend(frameon=False)
