"""Scenarios: from a file, a name, text or a dict."""

from __future__ import annotations

import operator
import os
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from typing import Any

import tomli_w

from . import _native
from .controllers import Controller, known, renewed, used_in


class ScenarioWarning(UserWarning):
    """Something of a scenario is left out, or is not what it looks like."""


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
        text: str | None = None
        if isinstance(source, Mapping):
            origin, text = "dict", tomli_w.dumps(plain(source))
        elif isinstance(source, str) and "\n" in source:
            origin, text = "text", _text(source)
        else:
            # Read once: a file that changes, or another working directory, changes nothing.
            origin = os.fspath(source)
            if origin not in _native.built_in():
                text = _native.text(origin)
                origin = os.path.abspath(origin)
        self._state = (origin, text, _keys(set or {}), *_seeded(seed, repeat), bool(quick))
        self._native = self._read()
        self._warn()

    def _warn(self, known: Sequence[str] = ()) -> None:
        """What is strange in it, as :class:`ScenarioWarning`, but for what is ``known``."""
        for what in self._native.warnings:
            if what not in known:
                warnings.warn(what, ScenarioWarning, stacklevel=3)

    def _read(self) -> _native.Scenario:
        origin, text, set, seed, repeat, quick = self._state
        keys = [(key, as_set(value)) for key, value in set.items()]
        return _native.Scenario(origin, text, set=keys, seed=seed, repeat=repeat, quick=quick)

    @classmethod
    def _of(cls, state: tuple[Any, ...]) -> Scenario:
        other = object.__new__(cls)
        other._state = state
        other._native = other._read()
        return other

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

    @property
    def text(self) -> str:
        """The text of its file, without what ``set`` changes."""
        return self._native.text

    def set(self, keys: Mapping[str, Any]) -> Scenario:
        """This scenario with other values: ``s.set({"path.rtt": "80ms"})``."""
        origin, text, set, *rest = self._state
        changed = self._of((origin, text, {**set, **_keys(keys)}, *rest))
        changed._warn(self._native.warnings)
        return changed

    def matrix(self, axes: Mapping[str, Iterable[Any]]) -> Scenario:
        """This scenario over the product of these lists, in the place of its own matrix.

        What its file says of single cases that are no longer there is left out, with a
        :class:`ScenarioWarning` that names it."""
        origin, _, set, *rest = self._state
        data = tomllib.loads(self.text)
        lists = {key: [plain(v) for v in values] for key, values in lists_of(axes).items()}
        gone = _without_cases(data, lists)
        data["matrix"] = lists
        kept = {key: value for key, value in set.items() if key not in axes}
        try:
            changed = self._of((origin, tomli_w.dumps(data), kept, *rest))
        except _native.ScenarioError:
            # Wrong worlds change what only some of the old cases have.
            if data.pop("negative", None) is None:
                raise
            gone.append("its wrong worlds")
            changed = self._of((origin, tomli_w.dumps(data), kept, *rest))
        if gone:
            what = f"{self.name}: not said of the new matrix, and left out: {'; '.join(gone)}"
            warnings.warn(what, ScenarioWarning, stacklevel=2)
        return changed

    def with_seeds(self, seed: int, repeat: int = 1) -> Scenario:
        """This scenario with the seeds from ``seed`` on."""
        origin, text, set, _, _, quick = self._state
        return self._of((origin, text, set, *_seeded(seed, repeat), quick))

    def as_quick(self) -> Scenario:
        """This scenario with what its ``[quick]`` sets."""
        return self._of((*self._state[:-1], True))

    def __reduce__(self) -> tuple[Any, ...]:
        """Workers of other processes read it anew."""
        return _restored, (self._state, used_in([self.text, *self._values()]))

    def _current(self) -> Scenario:
        """With the controllers as their classes are now."""
        return self._of(self._state) if renewed([self.text, *self._values()]) else self

    def _values(self) -> list[str]:
        return [as_set(value) for value in self._state[2].values()]

    def __repr__(self) -> str:
        cases, seeds = len(self._native.cases()), len(self.seeds)
        return f"<fullpipe.Scenario {self.name!r}: {cases} cases x {seeds} seeds>"


def _keys(given: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise _native.ScenarioError(f"error: `{given!r}`: keys are a dict with their values")
    for key in given:
        if not isinstance(key, str):
            raise _native.ScenarioError(f"error: `{key!r}` is no key of a scenario")
    return {_text(key): value for key, value in given.items()}


def _text(text: str) -> str:
    # As Python has it of file names that are no UTF-8.
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise _native.ScenarioError(f"error: {text!r} cannot be written as UTF-8")
    return text


def whole(name: str, given: Any, least: int = 1, below: int = 2**32) -> int:
    """A whole number from ``least`` on."""
    try:
        number = operator.index(given)
    except TypeError:
        number = least - 1
    if not least <= number < below:
        raise _native.ScenarioError(
            f"error: `{name}` = {given!r}: a whole number is expected, at least {least}"
            + (f", below {below}" if number >= below else "")
        )
    return number


def _seeded(seed: Any, repeat: Any) -> tuple[int | None, int | None]:
    return (
        None if seed is None else whole("seed", seed, 0, 9 * 10**18 + 1),
        None if repeat is None else whole("repeat", repeat),
    )


def lists_of(axes: Mapping[str, Iterable[Any]]) -> dict[str, list[Any]]:
    """Axes with their values: anything that has an order, which a set has not in every process."""
    if not isinstance(axes, Mapping):
        raise _native.ScenarioError(f"error: `{axes!r}`: axes are a dict of lists")
    lists = {}
    for key, values in axes.items():
        if not isinstance(key, str):
            raise _native.ScenarioError(f"error: `{key!r}` is no key of a scenario")
        unordered = (str, bytes, Mapping, Set)
        ordered = isinstance(values, Iterable) and not isinstance(values, unordered)
        lists[key] = list(values) if ordered else []
        if not lists[key]:
            raise _native.ScenarioError(f"error: `{key}`: a list of values is expected")
    return lists


def listed(names: str | Sequence[str]) -> list[str]:
    """Names; a single one need not be in a list."""
    return [names] if isinstance(names, str) else list(names)


def _restored(state: tuple[Any, ...], controllers: tuple[type[Controller], ...]) -> Scenario:
    known(controllers)
    return Scenario._of(state)


def plain(value: Any) -> Any:
    """A value as TOML knows it: NumPy's scalars and arrays, paths and tuples are no exception."""
    if isinstance(value, Mapping):
        return {_text(str(key)): plain(of) for key, of in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(of) for of in value]
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, type) and issubclass(value, Controller):
        if not hasattr(value, "name"):
            raise _native.ScenarioError(
                f"error: {value.__name__} has no name\n  hint: `name = \"mine\"` in the class "
                "makes it a stack"
            )
        return value.name
    # Their Python values; asked by name, since nobody needs NumPy for the rest.
    to_list = getattr(value, "tolist", None)
    if to_list is not None:
        return plain(to_list())
    if not isinstance(value, bool | int | float | Decimal):
        hint = "leave the key out" if value is None else "text with a unit, as '20ms', is one"
        raise _native.ScenarioError(
            f"error: `{value!r}` is no text, number, truth value, list or table\n  hint: {hint}"
        )
    return value


def as_set(value: Any) -> str:
    """A value as ``--set`` takes it: text as it is, everything else as TOML."""
    value = plain(value)
    return value if isinstance(value, str) else _inline(value)


def _inline(value: Any) -> str:
    """TOML on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f'"{k}" = {_inline(v)}' for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").strip()


def _without_cases(data: dict[str, Any], axes: Mapping[str, Sequence[Any]]) -> list[str]:
    """Takes out what names values that `axes` does not have; returns a line for each."""
    gone: list[str] = []
    old = set(_flat(data.get("matrix", {})))
    kept = []
    for expected in data.pop("expect", []):
        tables = (expected.get(key, {}) for key in ("where", "agrees_with", "ratio_to"))
        missing = [f"{key} = {value}" for table in tables for key, value in _missing(table, axes)]
        if missing:
            gone.append(f"expectation of {expected.get('metric')} where {', '.join(missing)}")
        else:
            kept.append(expected)
    if kept:
        data["expect"] = kept
    measure = data.get("measure", {})
    for key, value in _missing(measure.get("baseline", {}), axes):
        gone.append(f"baseline {key} = {value}")
        measure.pop("baseline", None)
    figures = data.pop("report", [])
    for drawn in figures:
        lost = [axis for axis in (drawn.get("x"), drawn.get("y")) if axis in old - set(axes)]
        gone += [f"figure over {axis}" for axis in lost[:1]]
    figures = [f for f in figures if not {f.get("x"), f.get("y")} & (old - set(axes))]
    if figures:
        data["report"] = figures
    # The lists that are asked for are run, in quick runs too.
    quick = data.get("quick", {})
    for key, value in _flat(quick).items():
        if key in axes or key in old and isinstance(value, list):
            _remove(quick, key)
    return gone


def _missing(table: Any, axes: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, Any]]:
    for key, value in _flat(table).items():
        known = {str(of) for of in axes.get(key, ())}
        if any(str(of) not in known for of in (value if isinstance(value, list) else [value])):
            yield key, value


def _flat(table: Any, before: str = "") -> dict[str, Any]:
    """Dotted keys in one table, however they were written."""
    flat: dict[str, Any] = {}
    for key, value in table.items() if isinstance(table, Mapping) else ():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{before}{key}.")
        else:
            flat[before + key] = value
    return flat


def _remove(table: dict[str, Any], key: str) -> None:
    if key in table:
        del table[key]
        return
    for first, inner in table.items():
        if isinstance(inner, dict) and key.startswith(f"{first}."):
            _remove(inner, key.removeprefix(f"{first}."))
            return


def words(value: Any) -> Iterator[str]:
    """Every text in a value, and in the TOML that a text may be."""
    value = plain(value)
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for of in value:
            yield from words(of)
    elif isinstance(value, str):
        yield value
        if value[:1] in "{[":
            try:
                yield from words(tomllib.loads(f"x = {value}"))
            except tomllib.TOMLDecodeError:
                pass


def files_named(scenario: Scenario, values: Iterable[Any]) -> dict[str, bytes]:
    """Every file that a scenario or these values of its keys may refer to, by path."""
    origin, _, changed, *_ = scenario._state
    beside = os.path.dirname(origin) if os.path.isabs(origin) else ""
    found: dict[str, bytes] = {}
    everywhere = (tomllib.loads(scenario.text), changed, *values)
    for name in dict.fromkeys(word for value in everywhere for word in words(value)):
        for path in {name, os.path.join(beside, name)}:
            if "\0" not in path and "\n" not in path and os.path.isfile(path):
                with open(path, "rb") as file:
                    found[path] = file.read()
    return found
