"""Runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from . import _native
from .results import Kept, Result
from .scenarios import Scenario, whole

#: Is called with the runs that are done, and all of them.
Progress = Callable[[int, int], object]


def run(
    scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any],
    *,
    ground: str = "sim",
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    repeat: int | None = None,
    quick: bool = False,
    jobs: int = 0,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    kernel: str | None = None,
    progress: Progress | bool | None = None,
) -> Result:
    """Runs every case of a scenario with every seed.

    ``ground`` is one of :func:`grounds`; ``jobs`` threads (0: one per processor) run beside the
    interpreter. ``out`` keeps the result directory, else it goes with the result; with ``resume``
    finished runs in it are taken over. ``progress``: a function of runs done and of all, True for a
    bar, by default a bar on a terminal where tqdm is installed.

    Ctrl-C ends it; runs that are finished stay in ``out``.
    """
    scenario = changed(scenario, set, seed, repeat, quick)._current()
    keep = None
    if out is None:
        keep = Kept()
        out = keep.path / "result"
    told, close = bar(progress)
    try:
        native = _native.run(
            scenario._native,
            os.fspath(out),
            ground=ground,
            jobs=whole("jobs", jobs, 0),
            resume=resume,
            kernel=kernel,
            progress=told,
        )
    finally:
        close()
    return Result(native, keep)


def grounds() -> dict[str, str]:
    """Where runs can be made, by name, each with a few words."""
    return dict(_native.grounds())


def changed(
    scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any],
    set: Mapping[str, Any] | None,
    seed: int | None,
    repeat: int | None,
    quick: bool,
) -> Scenario:
    """The scenario with what a call changes in it."""
    if not isinstance(scenario, Scenario):
        return Scenario(scenario, set=set, seed=seed, repeat=repeat, quick=quick)
    scenario = scenario.set(set) if set else scenario
    scenario = scenario.as_quick() if quick else scenario
    if seed is None and repeat is None:
        return scenario
    return scenario.with_seeds(
        scenario.seeds[0] if seed is None else seed, 1 if repeat is None else repeat
    )


def bar(
    progress: Progress | bool | None, unit: str = "run"
) -> tuple[Progress | None, Callable[[], object]]:
    """The function that is called, and what ends it."""
    if callable(progress):
        return progress, lambda: None
    if progress is False or progress is None and not sys.stderr.isatty():
        return None, lambda: None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        if progress:
            raise _native.FullpipeError(
                "a progress bar needs tqdm\n  hint: pip install tqdm, or pass a function"
            ) from None
        return None, lambda: None
    shown = tqdm(unit=unit, leave=False)

    def told(done: int, total: int) -> None:
        shown.total = total
        shown.update(done - shown.n)

    return told, shown.close
