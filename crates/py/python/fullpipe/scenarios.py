"""Scenarios: from a file, a name, text or a dict."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import tomli_w

from . import _native

#: What a scenario can be made of.
Source = "str | os.PathLike[str] | Mapping[str, Any]"


def scenarios() -> list[str]:
    """Names of the built-in scenarios."""
    return _native.built_in()


class Scenario:
    """A valid scenario.

    ``source`` is a built-in name, a path, the text of a scenario file (anything with a line break),
    or a dict of the same shape. ``set`` changes keys by their paths, as ``--set`` does.

    >>> Scenario({"name": "mine", "duration": "5s", "path": {"rate": "10Mbit/s", "rtt": "40ms"},
    ...           "flow": [{"name": "main", "stack": "cubic"}]})
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Mapping[str, Any],
        *,
        set: Mapping[str, Any] | None = None,
        seed: int | None = None,
        repeat: int | None = None,
        quick: bool = False,
    ) -> None:
        self._text: str | None = None
        if isinstance(source, Mapping):
            self._origin = "dict"
            self._text = tomli_w.dumps(dict(source))
        elif isinstance(source, str) and "\n" in source:
            self._origin = "text"
            self._text = source
        else:
            # Read once: a file that changes, or another working directory, changes nothing.
            self._origin = os.fspath(source)
            if self._origin not in _native.built_in():
                self._text = _native.text(self._origin)
                self._origin = os.path.abspath(self._origin)
        self._set = dict(set or {})
        self._seed, self._repeat, self._quick = seed, repeat, quick
        self._native = self._read()

    def _read(self) -> _native.Scenario:
        return _native.Scenario(
            self._origin,
            self._text,
            set=[(key, _toml(value)) for key, value in self._set.items()],
            seed=self._seed,
            repeat=self._repeat,
            quick=self._quick,
        )

    @property
    def name(self) -> str:
        """Its name."""
        return self._native.name

    @property
    def about(self) -> str:
        """What it is about."""
        return self._native.about

    @property
    def seeds(self) -> list[int]:
        """Seeds that every case runs with."""
        return self._native.seeds

    @property
    def cases(self) -> list[dict[str, str]]:
        """Matrix parameters of every case, as written."""
        return [dict(case) for case in self._native.cases()]

    def set(self, keys: Mapping[str, Any]) -> Scenario:
        """This scenario with other values: ``s.set({"path.rtt": "80ms"})``."""
        return self._changed(self._text, {**self._set, **keys})

    def matrix(self, axes: Mapping[str, Sequence[Any]]) -> Scenario:
        """This scenario over the product of these lists, in the place of its own matrix."""
        data = tomllib.loads(self._text if self._text is not None else self.text)
        data["matrix"] = {key: list(values) for key, values in axes.items()}
        # Where the old axes are gone, so is what was said of single cases.
        kept = {key: value for key, value in self._set.items() if key not in axes}
        return self._changed(tomli_w.dumps(data), kept)

    @property
    def text(self) -> str:
        """The text of its file, without what ``set`` changes."""
        return self._text if self._text is not None else _native.text(self._origin)

    def _changed(self, text: str | None, set: Mapping[str, Any]) -> Scenario:
        other = object.__new__(Scenario)
        other._origin, other._text, other._set = self._origin, text, dict(set)
        other._seed, other._repeat, other._quick = self._seed, self._repeat, self._quick
        other._native = other._read()
        return other

    def with_seeds(self, seed: int, repeat: int = 1) -> Scenario:
        """This scenario with the seeds from ``seed`` on."""
        other = self._changed(self._text, self._set)
        other._seed, other._repeat = seed, repeat
        other._native = other._read()
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """Workers of other processes read it anew."""
        state = (self._origin, self._text, self._set, self._seed, self._repeat, self._quick)
        return _restored, state

    def __repr__(self) -> str:
        cases, seeds = len(self._native.cases()), len(self.seeds)
        return f"<fullpipe.Scenario {self.name!r}: {cases} cases x {seeds} seeds>"


def _restored(
    origin: str,
    text: str | None,
    set: Mapping[str, Any],
    seed: int | None,
    repeat: int | None,
    quick: bool,
) -> Scenario:
    scenario = object.__new__(Scenario)
    scenario._origin, scenario._text, scenario._set = origin, text, dict(set)
    scenario._seed, scenario._repeat, scenario._quick = seed, repeat, quick
    scenario._native = scenario._read()
    return scenario


def _toml(value: Any) -> str:
    """A value as ``--set`` takes it: text as it is, everything else as TOML."""
    if isinstance(value, str):
        return value
    return tomli_w.dumps({"x": value}).removeprefix("x = ").strip()
