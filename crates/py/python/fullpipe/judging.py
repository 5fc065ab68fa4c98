"""What results are worth: expectations held against wrong worlds, results side by side."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from . import _native
from .results import Result, open_result
from .running import Progress, bar, changed
from .scenarios import Scenario, listed, whole
from .tables import Table


@dataclass(frozen=True)
class Falsification:
    """Which expectations of a scenario could fail at all."""

    #: The object that ``fullpipe falsify --format json`` prints.
    json: dict[str, Any]

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return str(self.json["scenario"])

    @property
    def toothless(self) -> list[str]:
        """Names of the expectations that fail in no wrong world, and whose file does not say why
        that is right."""
        all = self.json["expectations"]
        return [e["name"] for e in all if e["toothless"] and not e.get("excuse")]

    @property
    def dead(self) -> list[str]:
        """Wrong worlds in which no number changes, and whose file does not say why."""
        worlds = self.json["worlds"]
        return [w["about"] for w in worlds if w["effect"] == "dead" and not w.get("inert")]

    @property
    def passed(self) -> bool:
        """True if every expectation could fail, and every world that the file names is noticed, or
        changes no number where it says so."""
        return not self.toothless and not self.unnoticed

    @property
    def unnoticed(self) -> list[str]:
        """Worlds of the file (``[[negative]]``) that are not what it says: no expectation fails in
        them, or, of those with ``inert``, a number changes."""
        worlds = (w for w in self.json["worlds"] if "line" in w)
        return [w["about"] for w in worlds if w["effect"] != ("dead" if w.get("inert") else "caught")]

    @property
    def expectations(self) -> Table:
        """A row per expectation: its bound, its values, and how many worlds it catches."""
        all = self.json["expectations"]
        return table(
            {
                "name": [e["name"] for e in all],
                "metric": [e["metric"] for e in all],
                "low": [e["bound"][0] for e in all],
                "high": [e["bound"][1] for e in all],
                "passes": [str(e["passes"]).lower() for e in all],
                "caught": [float(len(e["caught"])) for e in all],
                "missed": [float(len(e["missed"])) for e in all],
                "first_caught": [next(iter(e["caught"]), "") for e in all],
            }
        )

    @property
    def worlds(self) -> Table:
        """A row per wrong world, and what became of it."""
        all = self.json["worlds"]
        return table(
            {
                "about": [w["about"] for w in all],
                "set": [", ".join(w["set"]) for w in all],
                "effect": [w["effect"] for w in all],
                "caught_by": [", ".join(w["caught_by"]) for w in all],
            }
        )

    def __repr__(self) -> str:
        n = len(self.json["expectations"])
        return f"<fullpipe.Falsification {self.scenario!r}: {n - len(self.toothless)} of {n} bite>"

    def _repr_html_(self) -> str:
        names = ", ".join(self.toothless)
        verdict = f"can fail nowhere: {escape(names)}" if names else "every expectation can fail"
        return f"<b>{escape(self.scenario)}</b>: {verdict}" + self.expectations._repr_html_()


def falsify(
    scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any],
    *,
    set: Mapping[str, Any] | None = None,
    repeat: int | None = None,
    quick: bool = False,
    every_world: bool | None = None,
    jobs: int = 0,
    progress: Progress | bool | None = None,
) -> Falsification:
    """Runs a scenario in wrong worlds, in which its subject is another one or something is missing
    that it is about: an expectation that passes in all of them says nothing.

    Without ``every_world`` quick ones are looked at up to the first in which an expectation fails.
    """
    scenario = changed(scenario, set, None, repeat, quick)
    first = quick and not every_world
    told, close = bar(progress)
    try:
        found = _native.falsify(scenario._native,
            jobs=whole("jobs", jobs, 0),
            first_failure=first,
            progress=told,
        )
    finally:
        close()
    return Falsification(json.loads(found))


@dataclass(frozen=True)
class Comparison:
    """Two results side by side."""

    #: The object that ``fullpipe compare --format json`` prints.
    json: dict[str, Any]

    @property
    def agree(self) -> bool:
        """True if nothing that is judged differs beyond its threshold, and nothing is missing."""
        return bool(self.json["agree"])

    @property
    def rows(self) -> Table:
        """A row per number: its means, their difference with its 95 % interval, and the verdict:
        ``same``, ``indistinguishable`` (chance does as much to one of so many), ``within`` or
        ``beyond`` the threshold."""
        all = self.json["rows"]
        keys = dict.fromkeys(key for row in all for key in row["params"])
        interval = [row.get("difference_ci95") or [None, None] for row in all]
        return table(
            {key: [str(row["params"].get(key, "")) for row in all] for key in keys}
            | {
                "of": [row.get("flow") or row.get("link") or "case" for row in all],
                "metric": [row["metric"] for row in all],
                "a": [row["a"]["mean"] for row in all],
                "b": [row["b"]["mean"] for row in all],
                "difference": [row["difference"] for row in all],
                "low": [low for low, _ in interval],
                "high": [high for _, high in interval],
                "relative": [row["relative"] for row in all],
                "verdict": [row["verdict"] for row in all],
            }
        )

    @property
    def missing(self) -> list[dict[str, Any]]:
        """Cases, flows and links that only one of the two has."""
        return list(self.json["missing"])

    def __repr__(self) -> str:
        word = "agree" if self.agree else "disagree"
        return f"<fullpipe.Comparison: {word}, {len(self.json['rows'])} numbers>"

    def _repr_html_(self) -> str:
        a, b = (f"{s['scenario']} on {s['ground']}" for s in (self.json["a"], self.json["b"]))
        word = "agree" if self.agree else "disagree"
        apart = [r for r in self.rows.rows() if r["verdict"] in {"within", "beyond"}]
        shown = table({key: [row[key] for row in apart] for key in apart[0]}) if apart else None
        head = f"{escape(a)} and {escape(b)} <b>{word}</b>"
        return head + (shown._repr_html_() if shown else ": no number differs")


def compare(
    a: Result | str | os.PathLike[str],
    b: Result | str | os.PathLike[str],
    *,
    threshold: float = 0.05,
    thresholds: Mapping[str, float] | None = None,
    metrics: str | Sequence[str] = (),
    agreement: bool | None = None,
    with_flagged: bool = False,
) -> Comparison:
    """Compares two results, or their directories, run by run where both have the same seeds.

    ``threshold`` is the largest relative difference that is accepted, ``thresholds`` those of
    single metrics: ``loss_events`` and ``timeouts`` have to be equal unless they are named. Results
    of different grounds are judged by their agreement, unless ``agreement`` says otherwise. Cases
    with a run that was not what the scenario says are left out (``json["left_out"]``), unless
    ``with_flagged``.
    """
    for most in (threshold, *(thresholds or {}).values()):
        if not 0 <= most < math.inf:
            raise _native.ScenarioError(f"error: a threshold is a part from 0 on, not {most!r}")
    natives = [(r if isinstance(r, Result) else open_result(r))._native for r in (a, b)]
    found = _native.compared(
        natives[0],
        natives[1],
        threshold,
        dict(thresholds or {}),
        listed(metrics),
        (agreement, with_flagged),
    )
    return Comparison(json.loads(found))


def table(columns: Mapping[str, list[Any]]) -> Table:
    """Columns of texts or of numbers."""
    return Table(_native.Table.of(list(columns.items())))
