"""Congestion controllers written in Python.

    class Careful(fp.Controller):
        "Reno that stops growing while it sees a queue."

        name = "careful"
        parameters = {"most_ms": (5.0, 0.0, 1000.0)}

        def on_round(self, round):
            waits = round.rtt is not None and round.rtt - round.min_rtt > self.most_ms / 1000
            self.increase = 0.0 if waits else 1.0

    fp.run(scenario.matrix({"flow.main.stack": ["reno", "careful", "careful(most_ms=20)"]}))

A class with a ``name`` is a stack of that name from then on, in every scenario of this process and,
with a sweep, of its workers. Such flows run in the simulator.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dis import get_instructions
from types import CodeType, FunctionType
from typing import Any, ClassVar

from . import _native, events

_DATA = bool | int | float | complex | str | bytes | None


class Controller(_native.Controller):
    """A flow's congestion controller; every flow has an object of its own.

    The methods below are called where a subclass defines them. What it leaves as it is, is AIMD
    with slow start (RFC 5681), which grows by ``increase`` segments a round trip and removes
    ``decrease`` of the window: 1 and 0.5, Reno, until a method sets others. A method finds
    ``window`` and ``ssthresh`` (segments) as they are and sets what they shall be;
    ``pacing_rate_mbps`` paces. It reads ``initial_window`` and ``max_window`` (segments), ``mss``
    (bytes), ``slow_start_limit``, the most segments that one ACK may add there, and ``seed``,
    another one in each flow and run, for what it draws at random.

    ``on_ack`` costs some microseconds an ACK; ``on_round`` is called once a round trip with what
    its ACKs said, and costs next to nothing. In between the window grows by ``increase``.

    What is set in a class and not in an object: ``name``; ``parameters``, numbers that a spelling
    may give, ``"careful(most_ms=20)"``, each with its default or ``(default, low, high)``, found
    as attributes from ``on_start`` on; ``variables``, attributes that traces and tables show;
    ``owns_window``, the window holds during a recovery too, in the place of PRR; ``reads_rate``,
    ACKs have ``delivery_rate``.
    """

    name: ClassVar[str]
    parameters: ClassVar[Mapping[str, float | tuple[float, float, float]]] = {}
    variables: ClassVar[str | Sequence[str]] = ()
    owns_window: ClassVar[bool] = False
    reads_rate: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in vars(cls):
            _register(cls)

    def on_start(self, start: events.Start) -> None:
        """The connection is open."""

    def on_ack(self, ack: events.Ack) -> None:
        """An ACK that is new in any way; instead of the growth of AIMD."""

    def on_round(self, round: events.Round) -> None:
        """A round trip is over: the data that was out when it began is acknowledged."""

    def on_congestion(self, event: events.Congestion) -> None:
        """A loss, a mark or a local drop, once a round trip, and once more for a lost
        retransmission; instead of AIMD's reduction."""

    def on_lost(self, segment: events.Lost) -> None:
        """A segment was marked lost."""

    def on_timeout(self, event: events.Timeout) -> None:
        """The retransmission timer went off; instead of a window of one segment."""

    def on_recovery_exit(self, now: float) -> None:
        """All that was sent before the congestion event is acknowledged, or the event was for
        nothing and a mark keeps the window down."""

    def on_undo(self, now: float) -> None:
        """The last reduction was for nothing; instead of the window before it."""

    def on_idle(self, idle: float) -> None:
        """Window and threshold were changed after ``idle`` seconds without data."""


#: What a parameter may be the start of.
SETTABLE = {"window", "ssthresh", "increase", "decrease", "pacing_rate_mbps"}

#: What a controller has, and a class that has it hides.
_OF_OBJECTS = SETTABLE | {"initial_window", "max_window", "mss", "slow_start_limit", "seed"}

#: What somebody may mean who sets something else in an object, by its name elsewhere too.
_MEANT = {name: name for name in sorted(SETTABLE)} | {
    "cwnd": "window",
    "pacing_rate": "pacing_rate_mbps",
}

#: The same of what is set in a class.
_MEANT_IN_CLASS = {n: n for n in ("name", "parameters", "variables", "owns_window", "reads_rate")}

#: Classes by the names of their stacks.
KNOWN: dict[str, type[Controller]] = {}
#: Their fingerprints, when they became stacks.
_SAID: dict[str, str] = {}


def used_in(texts: Sequence[str]) -> tuple[type[Controller], ...]:
    """The classes whose names stand in these texts."""
    if not KNOWN:
        return ()
    words = {word for text in texts for word in re.findall(r"[A-Za-z0-9_.-]+", text)}
    return tuple(KNOWN[name] for name in sorted(words & KNOWN.keys()))


def _register(cls: type[Controller]) -> None:
    if not isinstance(cls.name, str):
        raise _native.ScenarioError(f"error: name = {cls.name!r}: a text is expected")
    defined = [n for n in _native.hooks() if getattr(cls, n) is not getattr(Controller, n)]
    for name in dir(cls):
        if name.startswith("on_") and not hasattr(Controller, name) and callable(getattr(cls, name)):
            near = difflib.get_close_matches(name, _native.hooks(), 1, 0.5)
            hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(_native.hooks())}"
            raise _native.ScenarioError(
                f"error: `{cls.name}.{name}`: nothing calls it\n  hint: {hint}"
            )
    parameters = []
    for name, given in cls.parameters.items():
        if name in {"window", "ssthresh"}:
            raise _native.ScenarioError(
                f"error: `{cls.name}({name})`: a flow has its {name} when it opens\n  hint: choose "
                f"another name, and set `self.{name}` in `on_start`"
            )
        if hasattr(Controller, name) and name not in SETTABLE:
            raise _native.ScenarioError(
                f"error: `{cls.name}({name})`: every controller has `{name}`, and it is no parameter"
            )
        try:
            default, low, high = given if isinstance(given, tuple) else (given, -1e300, 1e300)
            parameters.append((name, float(default), float(low), float(high)))
        except (TypeError, ValueError):
            raise _native.ScenarioError(
                f"error: `{cls.name}({name})` = {given!r}: a number or (default, low, high) is "
                "expected"
            ) from None
    variables = [cls.variables] if isinstance(cls.variables, str) else [*cls.variables]
    if not all(isinstance(name, str) and name.isidentifier() for name in variables):
        raise _native.ScenarioError(f"error: variables = {variables!r}: names of attributes")
    named = _refuse_slips(cls, {*cls.parameters, *variables})
    about = next(iter((cls.__doc__ or "").strip().splitlines()), "written in Python")
    _native.register(
        cls,
        cls.name,
        about,
        fingerprint(cls),
        parameters,
        defined,
        variables,
        cls.owns_window,
        cls.reads_rate,
        "pacing_rate_mbps" in named,
    )
    KNOWN[cls.name] = cls
    _SAID[cls.name] = fingerprint(cls)


def renewed(texts: Sequence[str]) -> bool:
    """Makes stacks anew whose classes, or what these read, have changed since; False if none has."""
    changed = [cls for cls in used_in(texts) if fingerprint(cls) != _SAID[cls.name]]
    for cls in changed:
        _register(cls)
    return bool(changed)


def _refuse_slips(cls: type[Controller], used: set[str]) -> set[str]:
    """Refuses attributes that look like those of a controller and that nothing reads; returns all
    that its methods set or read."""
    own = cls.__mro__[: cls.__mro__.index(Controller)]
    values = [(name, value) for of in own for name, value in vars(of).items()]
    for name, value in values:
        if name in _OF_OBJECTS and not isinstance(value, property):
            raise _native.ScenarioError(
                f"error: `{cls.name}.{name}`: it is of an object, not of the class\n"
                f"  hint: set it in a method: `self.{name} = ...` in `on_start`"
            )
    set_, read = set[str](), set(used)
    for function in (f for _, value in values for f in _functions(value)):
        _attributes(function.__code__, function.__code__.co_varnames[:1], set_, read)
    in_class = {
        name
        for name, value in values
        if not name.startswith("_") and not callable(value) and not hasattr(value, "__get__")
    }
    for names, meant in ((in_class, _MEANT_IN_CLASS), (set_, _MEANT)):
        for name in sorted(names - read - {"name"}):
            near = difflib.get_close_matches(name, meant, 1, 0.7)
            if near and not name.startswith("_") and not hasattr(Controller, name):
                raise _native.ScenarioError(
                    f"error: `{cls.name}.{name}`: nothing reads it\n"
                    f"  hint: did you mean `{meant[near[0]]}`?"
                )
    return set_ | read


def _functions(value: Any) -> list[FunctionType]:
    """The functions of a member of a class."""
    parts = [value.fget, value.fset] if isinstance(value, property) else [value]
    bare = (getattr(part, "__func__", part) for part in parts)
    bare = (getattr(part, "__wrapped__", part) for part in bare)
    return [part for part in bare if isinstance(part, FunctionType)]


def _attributes(code: CodeType, this: tuple[str, ...], set_: set[str], read: set[str]) -> None:
    """Attributes that a method sets in its object, and all that it may read."""
    loaded: Any = None
    for step in get_instructions(code):
        if step.opname == "STORE_ATTR":
            last = loaded[-1:] if isinstance(loaded, tuple) else (loaded,)
            if last == this:
                set_.add(step.argval)
        elif "ATTR" in step.opname or "METHOD" in step.opname:
            read.add(step.argval)
        loaded = step.argval
    for const in code.co_consts:
        if isinstance(const, CodeType):
            _attributes(const, this, set_, read)
        elif isinstance(const, str):
            # As in `getattr(self, "peak")`.
            read.add(const)


def known(classes: Sequence[type[Controller]]) -> None:
    """Makes classes stacks that came from another process: what pickles by value, as Dask does with
    what a notebook defines, makes a class first and gives it its name and methods then."""
    for cls in classes:
        if KNOWN.get(cls.name) is not cls:
            _register(cls)


def fingerprint(cls: type[Controller]) -> str:
    """Of what the class and its bases, up to :class:`Controller`, say and do: stored runs of other
    code are not taken over. With the functions and constants of the class's module, and the
    variables around it, that its methods read; other modules are not looked at."""
    parts: list[Any] = []
    seen: set[int] = set()
    for of in cls.__mro__[: cls.__mro__.index(Controller)]:
        for key, value in sorted(vars(of).items()):
            if key not in {"__module__", "__doc__", "__qualname__", "__firstlineno__"}:
                parts.append((key, _said(value, seen)))
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _said(value: Any, seen: set[int]) -> Any:
    """The same in every process, whatever order its hashes give to a set; None of what is neither
    code nor data."""
    if isinstance(value, property):
        return [_said(part, seen) for part in (value.fget, value.fset)]
    value = getattr(value, "__func__", value)
    if not isinstance(value, FunctionType | type):
        # What a cache or a compiler has wrapped.
        value = getattr(value, "__wrapped__", value)
    if isinstance(value, FunctionType):
        return _function(value, seen)
    if isinstance(value, set | frozenset):
        return sorted(repr(_said(item, seen)) for item in value)
    if isinstance(value, tuple | list):
        return [_said(item, seen) for item in value]
    if isinstance(value, Mapping):
        return [(_said(key, seen), _said(item, seen)) for key, item in value.items()]
    # NumPy's arrays and numbers; not imported here.
    if not isinstance(value, type) and {"dtype", "shape", "tolist"} <= set(dir(value)):
        return str(value.dtype), value.shape, _said(value.tolist(), seen)
    return repr(value) if isinstance(value, _DATA) else None


def _function(function: FunctionType, seen: set[int]) -> Any:
    if id(function) in seen:
        return None
    seen.add(id(function))
    around = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    read: dict[str, Any] = {}
    for name in sorted(_names(function.__code__)):
        found = function.__globals__.get(name)
        if not isinstance(found, FunctionType) or found.__module__ == function.__module__:
            read[name] = _said(found, seen)
    for name, cell in around.items():
        # Empty where it is assigned later, as `__class__` is while a class is made.
        with suppress(ValueError):
            read[name] = _said(cell.cell_contents, seen)
    defaults = _said(function.__defaults__, seen), _said(function.__kwdefaults__, seen)
    return _code(function.__code__, seen), defaults, sorted(read.items())


def _code(code: CodeType, seen: set[int]) -> Any:
    consts = [
        _code(const, seen) if isinstance(const, CodeType) else _said(const, seen)
        for const in code.co_consts
    ]
    return code.co_code, code.co_names, code.co_varnames, consts


def _names(code: CodeType) -> set[str]:
    """Of the module's variables that it reads."""
    names = {step.argval for step in get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    return names.union(*(_names(c) for c in code.co_consts if isinstance(c, CodeType)))


class Reno(Controller):
    """RFC 5681 in Python: under preset 2026 the same run as `reno`, to the bit. It counts segments and
    halves what is in flight, whatever `count` and `decrease_base` of a flow say.

    A law of one's own redefines ``grown`` and ``reduced``.
    """

    name = "reno-py"

    def grown(self, n: float) -> float:
        """Segments by which ``n`` acknowledged ones let the window grow in congestion avoidance."""
        return n / self.window

    def reduced(self, base: float) -> float:
        """The threshold after a loss, before the smallest one; ``base`` is the window, or what of
        it was in flight."""
        return 0.5 * base

    def on_start(self, start: events.Start) -> None:
        self._after_timeout = False
        self._saved: tuple[float, float] | None = None

    def on_ack(self, ack: events.Ack) -> None:
        if not ack.may_grow:
            return
        n = float(ack.delivered_now)
        if n > 0 and self.window < self.ssthresh:
            n = min(n, 1.0 if self._after_timeout else self.slow_start_limit)
            room = self.ssthresh - self.window
            if n <= room:
                self.window += n
                n = 0.0
            else:
                self.window = self.ssthresh
                n -= room
        if n > 0:
            self._after_timeout = False
            self.window += self.grown(min(n, self.window))

    def on_congestion(self, event: events.Congestion) -> None:
        # A mark or a local drop is never spurious; a second loss keeps what the first saved.
        if event.kind != "loss":
            self._saved = None
        elif event.first_in_window:
            self._saved = (self.window, self.ssthresh)
        least = 1.0 if event.kind == "ecn" else 2.0
        self.ssthresh = max(self.reduced(min(self.window, float(event.flight))), least)
        self.window = min(self.ssthresh, self.window)

    def on_timeout(self, event: events.Timeout) -> None:
        if event.first:
            if not event.nested:
                self._saved = (self.window, self.ssthresh)
            self.ssthresh = max(self.reduced(min(self.window, float(event.flight))), 2.0)
        self.window = 1.0
        self._after_timeout = True

    def on_recovery_exit(self, now: float) -> None:
        self._after_timeout = False

    def on_undo(self, now: float) -> None:
        if self._saved is not None:
            window, ssthresh = self._saved
            self.window = max(self.window, window)
            self.ssthresh = max(self.ssthresh, ssthresh)
            self._after_timeout, self._saved = False, None
