"""Sweeps: many cases, on whatever executor there is."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from . import _native
from .results import Result
from .running import Progress, run
from .scenarios import Scenario
from .tables import Table


class Submits(Protocol):
    """What runs the tasks: any ``concurrent.futures.Executor``, a Dask ``Client``, and everything
    else whose ``submit`` gives something with a ``result``."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any: ...


def sweep(
    scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any],
    matrix: Mapping[str, Sequence[Any]],
    *,
    seeds: int = 1,
    executor: Submits | None = None,
    out: str | os.PathLike[str],
    batch: int = 50,
    ground: str = "sim",
    progress: Progress | None = None,
) -> list[Path]:
    """Runs the product of the lists of ``matrix`` with ``seeds`` seeds each, ``batch`` cases a
    task, and writes a Parquet file per task into ``out``.

    Files bear the hash of what they hold: a sweep that is started again makes only those that are
    missing, and their bytes do not depend on the executor. pandas, polars and duckdb read the
    directory as one table. Without an executor, threads of this process run the tasks.

    Returns the files, in the order of the cases. An exception of a task ends the sweep; what is
    finished stays.
    """
    if seeds < 1 or batch < 1:
        raise _native.ScenarioError("error: `seeds` and `batch` are at least 1")
    for key, values in matrix.items():
        if isinstance(values, str) or not len(values):
            raise _native.ScenarioError(f"error: `{key}`: a list of values is expected")
    base = scenario if isinstance(scenario, Scenario) else Scenario(scenario)
    base = base.with_seeds(base.seeds[0], seeds)
    directory = Path(out)
    directory.mkdir(parents=True, exist_ok=True)
    own = ThreadPoolExecutor() if executor is None else None
    pool: Submits = own if own is not None else executor  # type: ignore[assignment]
    try:
        return _all(base, matrix, pool, directory, batch, ground, progress)
    finally:
        if own is not None:
            own.shutdown(cancel_futures=True)


def _all(
    base: Scenario,
    matrix: Mapping[str, Sequence[Any]],
    pool: Submits,
    directory: Path,
    batch: int,
    ground: str,
    progress: Progress | None,
) -> list[Path]:
    points = itertools.product(*matrix.values())
    cases = (dict(zip(matrix, point, strict=True)) for point in points)
    files: list[Path] = []
    waiting: dict[Path, Any] = {}
    done = 0
    for first, some in _batches(cases, batch):
        file = directory / f"part-{first:09}-{_hash(base, some, ground)}.parquet"
        files.append(file)
        if file.exists():
            done += 1
        else:
            waiting[file] = pool.submit(_task, base, some, first, ground)
        if len(waiting) >= _AHEAD:
            done += _write(*_next(waiting))
            if progress:
                progress(done, len(files))
    while waiting:
        done += _write(*_next(waiting))
        if progress:
            progress(done, len(files))
    return files


#: Tasks that are submitted and not yet written: memory does not grow with the sweep.
_AHEAD = 256


def _batches(
    cases: Iterator[dict[str, Any]], size: int
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    first = 0
    while some := list(itertools.islice(cases, size)):
        yield first, some
        first += len(some)


def _next(waiting: dict[Path, Any]) -> tuple[Path, Any]:
    file = next(iter(waiting))
    return file, waiting.pop(file)


def _write(file: Path, task: Future[bytes]) -> int:
    content = task.result()
    # A name of its own: another sweep may be writing the same part.
    temporary = file.with_name(f".{file.name}.{uuid4().hex}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
    return 1


def _hash(base: Scenario, cases: list[dict[str, Any]], ground: str) -> str:
    """Of all that decides the content."""
    engine = _native.fingerprint(ground)
    what = (engine, base.text, sorted(base._set.items()), base.seeds, base._quick, cases, ground)
    return hashlib.sha256(repr(what).encode()).hexdigest()[:16]


def _task(base: Scenario, cases: list[dict[str, Any]], first: int, ground: str) -> bytes:
    """Runs some cases, one thread each task; returns a Parquet file."""
    tables: list[Table] = []
    for case in cases:
        result: Result = run(base.set(case), ground=ground, jobs=1, progress=False)
        tables.append(result.runs)
    return _native.joined([t._native for t in tables], list(cases[0]), _texts(cases), first)


def _texts(cases: list[dict[str, Any]]) -> list[list[str]]:
    return [[str(value) for value in case.values()] for case in cases]


__all__ = ["Executor", "sweep"]
