"""Figures for papers, with matplotlib: sizes in millimetres, text as text in PDF and SVG.

    fig = fp.plot.window(result, width=fp.plot.COLUMN)
    fig.savefig("window.pdf")

``result.plot.window()`` is the same. :data:`STYLE` is matplotlib's to change: fonts and sizes are
taken from it when a figure is drawn and when it is saved. Figures of one's own are drawn with it
under :func:`style`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from . import _native
from .laws import law
from .results import Result
from .scenarios import listed
from .tables import Table, unknown_column

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Width of a column of two-column papers, and of their text, millimetres.
COLUMN, TEXT = 84.0, 174.0
MM = 1 / 25.4

#: Settings of matplotlib for every figure.
STYLE: dict[str, Any] = {
    "font.size": 8,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "fullpipe",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 1.0,
}


#: Width of a letter, about, inches.
LETTER: float = 0.55 * STYLE["font.size"] / 72


@contextmanager
def style() -> Iterator[None]:
    """Whatever is drawn or saved within looks as the figures here do: ``with fp.plot.style():``."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise _native.FullpipeError(
            "figures need matplotlib\n  hint: pip install 'fullpipe[plot]'"
        ) from None
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        yield


P = ParamSpec("P")
R = TypeVar("R")


def _styled(draw: Callable[P, R]) -> Callable[P, R]:
    @wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> R:
        with style():
            return draw(*args, **kwargs)

    return styled


@_styled
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


@_styled
def throughput(
    result: Result, case: int = 0, seed: int | None = None, *, width: float = COLUMN
) -> Figure:
    """Goodput of every flow of a run, per interval of ``measure.interval``."""
    samples = result.series("samples", case, seed)
    fig, axes = _figure(width, 0.55)
    flows = samples["name"]
    for flow in dict.fromkeys(flows.tolist()):
        of = flows == flow
        # A sample is of the interval that ends at its time; the first interval begins with the run.
        ends, goodput = samples["time_s"][of], samples["goodput_mbps"][of]
        axes.step(
            np.concatenate(([0.0], ends)),
            np.concatenate((goodput[:1], goodput)),
            where="pre",
            label=flow,
        )
    axes.set(xlabel="time (s)", ylabel="goodput (Mbit/s)", ylim=(0, None))
    _legend(axes)
    return fig


@_styled
def against(
    result: Result | Table,
    metric: str,
    axis: str,
    *,
    by: str = "stack",
    flow: str | None = None,
    width: float = COLUMN,
) -> Figure:
    """A metric against a matrix parameter: the mean of the seeds, with the 95 % interval of the
    mean by Student's t; a line for each value of ``by``. ``flow`` names the flow, where there are
    several. Where a seed has no value there is no mean, as in :attr:`Result.cases`."""
    runs = _runs(result, flow)
    number, unit = _numeric(runs, axis)
    x, series = runs[number], runs[by]
    fig, axes = _figure(width, 0.6)
    for name in dict.fromkeys(series.tolist()):
        points, means, halves = [], [], []
        for point in np.unique(x[series == name]):
            of = (series == name) & (x == point)
            mean, half = mean_and_half_width(_values(runs, of, metric))
            if mean == mean:
                points.append(point)
                means.append(mean)
                halves.append(half)
        label = _label(name, runs["flow"][series == name])
        axes.errorbar(points, means, yerr=halves, label=label, marker="o", ms=3, capsize=2)
    axes.set(xlabel=f"{axis} ({unit})" if unit else axis, ylabel=metric)
    _legend(axes)
    return fig


@_styled
def matrix(
    result: Result | Table,
    metric: str,
    x: str,
    y: str,
    *,
    flow: str | None = None,
    width: float = COLUMN,
) -> Figure:
    """A metric over two matrix parameters, the mean of the seeds in each cell. ``flow`` names the
    flow, where there are several."""
    runs = _runs(result, flow)
    columns, rows = (list(dict.fromkeys(runs[axis].tolist())) for axis in (x, y))
    cells = np.full((len(rows), len(columns)), np.nan)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            of = (runs[y] == row) & (runs[x] == column)
            cells[i, j] = mean_and_half_width(_values(runs, of, metric))[0]
    names = [str(c) for c in columns]
    # The names of the columns rise to them, and a row has room for a number.
    high = LETTER * (5 * len(rows) + 9) + 0.5 * _long(names)
    ratio = 0.1 + 0.6 * len(rows) / max(len(columns), 1)
    fig, axes = _figure(width, max(ratio, high / (width * MM)))
    image = axes.imshow(cells, cmap="viridis", aspect="auto")
    known = cells[~np.isnan(cells)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 0.0)
    for (i, j), value in np.ndenumerate(cells):
        dark = value < low + 0.6 * (high - low)
        text = "" if value != value else f"{value:.4g}"
        axes.text(j, i, text, ha="center", va="center", color="white" if dark else "black")
    axes.set(xlabel=x, ylabel=y)
    axes.set_xticks(range(len(columns)), names, rotation=30, ha="right")
    axes.set_yticks(range(len(rows)), [str(r) for r in rows])
    axes.spines[:].set_visible(False)
    # Beside the bar it would be longer than a matrix of few rows is high.
    fig.suptitle(metric, fontsize=STYLE["font.size"])
    fig.colorbar(image)
    return fig


@_styled
def distribution(
    result: Result | Table, metric: str, *, by: str = "stack", width: float = COLUMN
) -> Figure:
    """The distribution function of a metric over all runs; a line for each value of ``by``. Runs
    without a value keep it below one."""
    runs = _runs(result)
    fig, axes = _figure(width, 0.6)
    values = np.asarray(runs[metric], dtype=float)
    # Traffic has no values of flows, and is no run of one.
    having = np.isin(runs["flow"], runs["flow"][~np.isnan(values)])
    for name in dict.fromkeys(runs[by].tolist()):
        of = having & (runs[by] == name)
        known = np.sort(values[of & ~np.isnan(values)])
        if len(known):
            parts = np.arange(len(known) + 1) / of.sum()
            places = np.concatenate((known[:1], known))
            axes.step(places, parts, where="post", label=_label(name, runs["flow"][of]))
    axes.set(xlabel=metric, ylabel="part of the runs", ylim=(0, 1))
    _legend(axes)
    return fig


@_styled
def response(
    stacks: str | Sequence[str], *, rtt: str = "100ms", points: int = 12, width: float = COLUMN
) -> Figure:
    """Response functions: the mean window against the loss rate."""
    fig, axes = _figure(width, 0.7)
    windows = np.logspace(1, 5, points).tolist()
    for stack in listed(stacks):
        cycles = law(stack, windows, rtt=rtt)
        axes.loglog(cycles["loss_rate"], cycles["mean_window"], label=stack, marker=".", ms=3)
    axes.set(xlabel="losses per segment", ylabel="mean window (segments)")
    _legend(axes)
    return fig


class Plots:
    """The figures of a result: ``result.plot.window(case=3)`` is ``fp.plot.window(result, case=3)``
    """

    def __init__(self, result: Result) -> None:
        self._result = result

    def __getattr__(self, name: str) -> Callable[..., Figure]:
        draw = FIGURES.get(name)
        if draw is None:
            raise AttributeError(f"no figure {name!r}; there are {', '.join(FIGURES)}")

        def of_result(*args: Any, **kwargs: Any) -> Figure:
            return draw(self._result, *args, **kwargs)

        return of_result

    def __dir__(self) -> list[str]:
        return list(FIGURES)


#: Figures of a result, by name.
FIGURES: dict[str, Callable[..., Figure]] = {
    draw.__name__: draw for draw in (window, throughput, against, matrix, distribution)
}


def mean_and_half_width(values: Any) -> tuple[float, float]:
    """Of numbers, those that are NaN left out: their mean, and half of its 95 % interval by
    Student's t; NaN without values, no width for one."""
    values = np.asarray(values, dtype=float)
    values = values[~np.isnan(values)]
    n = len(values)
    if n < 2:
        return (float(values[0]) if n else float("nan")), 0.0
    quantile = T975[min(n - 1, len(T975)) - 1]
    return float(values.mean()), float(quantile * values.std(ddof=1) / np.sqrt(n))


#: Student's t, 97.5 %, for 1 to 30 degrees of freedom; with more the last is 4 % too wide at most.
T975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


class _Rows(dict[str, Any]):
    """Some rows of a table."""

    def __missing__(self, name: str) -> Any:
        raise unknown_column(name, self.columns)

    @property
    def columns(self) -> list[str]:
        return list(self)


def _runs(result: Result | Table, flow: str | None = None) -> Table | _Rows:
    runs = result.runs if isinstance(result, Result) else result
    if flow is None:
        return runs
    names = runs["flow"]
    if flow not in names.tolist():
        there = ", ".join(dict.fromkeys(names.tolist()))
        raise _native.FullpipeError(f"error: no flow `{flow}`\n  hint: there are {there}")
    of = names == flow
    return _Rows({name: runs[name][of] for name in runs.columns})


def _refuse_mixtures(runs: Table | _Rows, of: Any, metric: str) -> None:
    """A mean over seeds is of one flow of one case: what else varies in it is no chance."""
    known = of & ~np.isnan(np.asarray(runs[metric], dtype=float))
    seeds = runs["seed"][known].tolist()
    if len(set(seeds)) == len(seeds):
        return
    names = [n for n in runs.columns if n in {"flow", "case", "point"} or runs[n].dtype.kind in "OU"]
    mixed = [name for name in names if len(dict.fromkeys(runs[name][known].tolist())) > 1]
    keys = [name for name in mixed if name not in {"flow", "case", "point", "stack", "kind"}]
    key = (keys or mixed)[0]
    hint = (
        f"`flow={runs['flow'][known][0]!r}` chooses a flow"
        if "flow" in mixed
        else f"draw it over `{key}` (`by` of `against`, `x` and `y` of `matrix`), or run the scenario "
        f"with one value, as by `set={{{key!r}: ...}}`"
    )
    raise _native.FullpipeError(
        f"error: a mean of {metric} would be over several of {', '.join(mixed)}\n"
        f"  hint: {hint}"
    )


def _values(runs: Table | _Rows, of: Any, metric: str) -> Any:
    """The values of the seeds: none where one of them has none, which a mean of the others would
    hide."""
    _refuse_mixtures(runs, of, metric)
    values = np.asarray(runs[metric], dtype=float)
    # Rows of traffic have no values of flows.
    flows = runs["flow"][of & ~np.isnan(values)]
    own = values[of & np.isin(runs["flow"], flows)]
    return own[:0] if np.isnan(own).any() else own


def _label(name: Any, flows: Any) -> str:
    """What a line is called: pings have no stack, and a line without a name no place in a legend."""
    return str(name) or ", ".join(dict.fromkeys(flows.tolist()))


def _numeric(runs: Table | _Rows, axis: str) -> tuple[str, str]:
    """The column that has the numbers of an axis, and its unit."""
    for name in (c for c in runs.columns if c == axis or c.startswith(f"{axis}_")):
        if runs[name].dtype.kind in "fi":
            return name, name.removeprefix(axis).strip("_").replace("number", "")
    _ = runs[axis]  # says what is meant, where there is no such column
    keys = runs.columns[: runs.columns.index("seed")]
    having = [n for n in keys if n not in {"case", "point"} and runs[n].dtype.kind in "fi"]
    hint = f"axes with numbers: {', '.join(having)}" if having else "no axis has any"
    raise _native.FullpipeError(f"error: `{axis}` has no numbers\n  hint: {hint}")


def _figure(width: float, ratio: float) -> tuple[Figure, Axes]:
    from matplotlib import pyplot

    from .figures import Styled

    size = (width * MM, width * ratio * MM)
    return pyplot.subplots(figsize=size, layout="constrained", FigureClass=Styled)


def _legend(axes: Axes) -> None:
    """Above the axes, where it hides no line, with as many names side by side as the width has room
    for; the figure is higher by it."""
    names = axes.get_legend_handles_labels()[1]
    if len(names) < 2:
        return
    figure = axes.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    wanted = int(0.8 * width // (_long(names) + 7 * LETTER))
    columns = min(max(wanted, 1), len(names))
    rows = -(-len(names) // columns)
    figure.set_size_inches(width, height + rows * 3 * LETTER)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.01), borderaxespad=0, ncols=columns)


def _long(texts: Sequence[str]) -> float:
    """About the length of the longest, inches."""
    return LETTER * max(map(len, texts), default=0)
