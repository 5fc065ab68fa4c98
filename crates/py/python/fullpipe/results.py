"""Results."""

from __future__ import annotations

import json
import os
import shutil
import weakref
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from . import _native
from .tables import Table

if TYPE_CHECKING:
    from .plot import Plots


@dataclass(frozen=True)
class Expectation:
    """What a scenario expects of a case, and what was seen."""

    name: str
    params: dict[str, Any]
    observed: float | None
    bound: tuple[float | None, float | None]
    passed: bool
    #: An end of the bound lies in the 95 % interval: neither shown nor contradicted.
    unclear: bool


@dataclass(frozen=True)
class Case:
    """A point of the matrix: means over its seeds, as ``fullpipe run --format json`` has them."""

    params: dict[str, Any]
    seeds: list[int]
    flows: list[dict[str, Any]]
    links: list[dict[str, Any]]
    metrics: dict[str, Any]


class Kept:
    """A directory that goes with its object: in the process that made it, in none of its forks."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="fullpipe-"))
        weakref.finalize(self, _removed, self.path, os.getpid())


def _removed(path: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


class Result:
    """A finished result; ``path`` is its directory, gone with the object if nobody named one."""

    def __init__(self, native: _native.ResultDir, keep: Kept | None = None):
        self._native = native
        self._keep = keep

    @property
    def path(self) -> Path:
        """The directory."""
        return Path(self._native.path)

    @cached_property
    def json(self) -> dict[str, Any]:
        """The object that ``fullpipe run --format json`` prints."""
        read: dict[str, Any] = json.loads(self._native.json())
        return read

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return str(self.json["scenario"])

    @property
    def ground(self) -> str:
        """Name of the ground."""
        return str(self.json["ground"])

    @property
    def peer(self) -> str | None:
        """The other host, where the path was the one to there and not the scenario's."""
        peer = self.json.get("peer")
        return None if peer is None else str(peer)

    @cached_property
    def cases(self) -> list[Case]:
        """Every case, in the order of the matrix."""
        return [
            Case(c["params"], c["seeds"], c["flows"], c["links"], c["metrics"])
            for c in self.json["cases"]
        ]

    @cached_property
    def expectations(self) -> list[Expectation]:
        """What was expected, and what came."""
        return [
            Expectation(
                name=e["name"],
                params=e["params"],
                observed=e["observed"],
                bound=(e["bound"][0], e["bound"][1]),
                passed=e["pass"],
                unclear=e.get("unclear", False),
            )
            for e in self.json["expectations"]
        ]

    @property
    def passed(self) -> bool:
        """True if no expectation fails."""
        return all(e.passed for e in self.expectations)

    @cached_property
    def runs(self) -> Table:
        """One row per flow, case and seed; parameters as written and, where they are quantities,
        as numbers."""
        return self._with_axes(self._native.runs())

    @cached_property
    def links(self) -> Table:
        """One row per link, case and seed."""
        return self._with_axes(self._native.links())

    def _with_axes(self, native: _native.Table) -> Table:
        names = {name for case in self.cases for name in case.params}
        return Table(native.with_axes([c for c in native.columns if c in names]))

    def trace(self, case: int = 0, seed: int | None = None) -> Table:
        """The flows of a run over time, the densest that was kept."""
        seed = self._seed(case, seed)
        native = self._native.trace(case, seed)
        if native is None:
            raise _native.FullpipeError(
                f"case {case} with seed {seed} kept no trace\n"
                '  hint: set={"measure.trace": "full"} keeps one'
            )
        return Table(native)

    def series(self, kind: str, case: int = 0, seed: int | None = None) -> Table:
        """``links``, ``samples``, ``transfers``, ``pings`` or ``tcp_info`` of a run over time."""
        seed = self._seed(case, seed)
        native = self._native.series(case, seed, kind)
        if native is None:
            raise _native.FullpipeError(f"case {case} with seed {seed} kept no {kind}")
        return Table(native)

    def _seed(self, case: int, seed: int | None) -> int:
        if not 0 <= case < len(self.cases):
            raise IndexError(f"case {case}: there are cases 0 to {len(self.cases) - 1}")
        seeds = self.cases[case].seeds
        if seed is None:
            return seeds[0]
        if seed not in seeds:
            raise IndexError(f"seed {seed}: case {case} has the seeds {seeds}")
        return seed

    @property
    def plot(self) -> Plots:
        """Its figures: ``result.plot.window(case=3)``; see :mod:`fullpipe.plot`."""
        from .plot import Plots

        return Plots(self)

    def report(self) -> Path:
        """Writes the report page, one file that opens in a browser; returns where it is."""
        return Path(self._native.report())

    def __reduce__(self) -> tuple[Any, ...]:
        """A result that is kept goes to other processes as its path, another with its files."""
        if self._keep is None:
            return open_result, (self.path.absolute(),)
        files = (file for file in self.path.rglob("*") if file.is_file())
        return _unpacked, ({str(f.relative_to(self.path)): f.read_bytes() for f in files},)

    def __repr__(self) -> str:
        return f"<fullpipe.Result {self.scenario!r} on {self.ground}: {len(self.cases)} cases>"

    def _repr_html_(self) -> str:
        failed = sum(not e.passed for e in self.expectations)
        verdict = f"{failed} of {len(self.expectations)} expectations fail" if failed else ""
        if not failed and self.expectations:
            verdict = f"all {len(self.expectations)} expectations hold"
            if unclear := sum(e.unclear for e in self.expectations):
                verdict += f", {unclear} of them unclear"
        head = f"<b>{escape(self.scenario)}</b> on {escape(self.ground)}. {verdict}"
        return head + self.runs._repr_html_()


def _unpacked(files: dict[str, bytes]) -> Result:
    keep = Kept()
    directory = keep.path / "result"
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    return Result(_native.ResultDir(directory), keep)


def open_result(path: str | os.PathLike[str]) -> Result:
    """A result that ``run`` or the command ``fullpipe run --out`` has left."""
    return Result(_native.ResultDir(path))
