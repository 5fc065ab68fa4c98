"""Sweeps: many cases, on whatever executor there is."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import queue
import re
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Protocol
from urllib.parse import quote
from uuid import uuid4

from . import _native
from .controllers import Controller, fingerprint, known, used_in
from .running import Progress, bar
from .scenarios import Scenario, as_set, files_named, listed, lists_of, whole


class Submits(Protocol):
    """What runs the tasks: any ``concurrent.futures.Executor``, a Dask ``Client``, and everything
    else whose ``submit`` gives something with a ``result``."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any: ...


#: Says in a sweep's directory which sweep it is; readers of Parquet pass over such names.
PLAN = "_sweep.json"
#: Its files.
FILE = re.compile(r"part-\d{9,}-[0-9a-f]{16}\.parquet")
#: Tasks that are submitted and not yet written, or twice the workers if they are more: memory does
#: not grow with the sweep.
AHEAD = 256
#: Times in a row that workers may die before any task of theirs ends.
DEATHS = 3
AGAIN = (
    "what is finished is kept, start the sweep again; executor=2 (--processes) replaces workers "
    "that die"
)
STARTS = (
    "no task has ended: a script that starts processes does so below "
    '`if __name__ == "__main__":`, and they import classes from files, not from a notebook'
)


def sweep(
    scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any],
    matrix: Mapping[str, Sequence[Any]] | Iterable[Mapping[str, Any]],
    *,
    seeds: int = 1,
    precision: str | None = None,
    max_seeds: int = 64,
    of: str | Sequence[str] = ("goodput_mbps",),
    executor: Submits | int | None = None,
    out: str | os.PathLike[str],
    batch: int = 50,
    ground: str = "sim",
    partition: str | Sequence[str] = (),
    replace: bool = False,
    progress: Progress | bool | None = None,
) -> list[Path]:
    """Runs the product of the lists of ``matrix``, or the points that it gives
    (:func:`latin_hypercube`), with ``seeds`` seeds each, ``batch`` points a task, and writes a
    Parquet file per task into ``out``.

    With ``precision="2%"`` a case gets seeds until the 95 % intervals of its metrics ``of`` are
    that narrow (half width against mean), ``seeds`` at first (3 at least) and ``max_seeds`` at
    most.

    ``executor`` is anything with ``submit``; a number is that many processes, which hand over
    what they have made through a folder in ``TMPDIR``, and one that dies is replaced; without one
    threads of this process run the tasks. Files bear the hash of what they
    hold: a sweep that is started again makes only those that are missing, and their bytes do not
    depend on the executor. A directory holds one sweep; ``replace`` removes what another one has
    left, but for files that this one has too. ``partition`` names axes that become folders,
    ``path.rtt=20ms``, as Hive writes them, instead of columns. ``progress`` is that of :func:`run`,
    in tasks.

    Returns the files, in the order of the points. An exception of a task, and Ctrl-C, end the
    sweep; what is finished stays.
    """
    seeds, batch = whole("seeds", seeds), whole("batch", batch)
    max_seeds = whole("max_seeds", max_seeds)
    base = scenario if isinstance(scenario, Scenario) else Scenario(scenario)
    base = base.with_seeds(base.seeds[0], seeds)._current()
    if precision is not None:
        base = base.with_seeds(base.seeds[0], max(seeds, 3)).set(
            {
                "measure.precision": precision,
                "measure.precision_of": listed(of),
                "measure.max_seeds": max_seeds,
            }
        )
    partition = listed(partition)
    points = Points.of(matrix, partition)
    _refuse_twins(base, points)
    # What is wrong with a point its task tells; what is strange is told here, once.
    with suppress(_native.ScenarioError):
        base.set(dict(zip(points.keys, next(iter(points), ()), strict=False)))
    plan = Plan(base, points, batch, ground, tuple(partition), Path(out))
    with TemporaryDirectory(prefix="fullpipe-", ignore_cleanup_errors=True) as spool:
        workers = _workers(executor, spool)
        plan.claim(replace)
        told, close = bar(progress, "task")
        try:
            return _made(plan, workers, told)
        finally:
            close()


@dataclass
class Points:
    """The points of a sweep: a product that is never written out, or a list."""

    keys: list[str]
    axes: Mapping[str, Sequence[Any]] | None = None
    rows: list[list[str]] = field(default_factory=list)
    partition: Sequence[str] = ()

    @classmethod
    def of(cls, matrix: Any, partition: Sequence[str]) -> Points:
        """Checks them; partitions vary slowest."""
        if isinstance(matrix, Mapping):
            matrix = lists_of(matrix)
            keys = list(matrix)
        else:
            rows = [] if isinstance(matrix, str) or not isinstance(matrix, Iterable) else [*matrix]
            if not rows or not all(
                isinstance(row, Mapping) and row.keys() == rows[0].keys() for row in rows
            ):
                raise _native.ScenarioError(
                    "error: axes are a dict of lists, points are dicts with the same keys, one at "
                    "least"
                )
            keys = list(rows[0])
        for key in keys:
            if not isinstance(key, str):
                raise _native.ScenarioError(f"error: `{key!r}` is no key of a scenario")
            if key == "seeds":
                raise _native.ScenarioError(
                    "error: `seeds` is no axis\n  hint: seeds=N (--seeds N) runs every point N times"
                )
        for key in partition:
            if key not in keys:
                raise _native.ScenarioError(f"error: partition `{key}`: no axis of the sweep")
        if len(set(partition)) < len(partition):
            raise _native.ScenarioError("error: an axis is a partition once")
        keys.sort(key=lambda key: key not in partition)
        if isinstance(matrix, Mapping):
            return cls(keys, {key: [as_set(v) for v in matrix[key]] for key in keys}, [], partition)
        points = [[as_set(row[key]) for key in keys] for row in rows]
        points.sort(key=lambda point: point[: len(partition)])
        return cls(keys, None, points, partition)

    def __iter__(self) -> Iterator[tuple[str, ...] | list[str]]:
        return iter(self.rows) if self.axes is None else itertools.product(*self.axes.values())

    def parts(self, batch: int) -> Iterator[tuple[int, list[list[str]]]]:
        """Index of the first point, and the points, of every task; none crosses a partition."""
        n, first = len(self.partition), 0
        for _, of_one in itertools.groupby(self, key=lambda row: tuple(row[:n])):
            while some := [list(row) for row in itertools.islice(of_one, batch)]:
                yield first, some
                first += len(some)

    def tasks(self, batch: int) -> int:
        """Number of tasks."""
        if self.axes is None:
            return sum(1 for _ in self.parts(batch))
        sizes = [len(values) for values in self.axes.values()]
        n = len(self.partition)
        return math.prod(sizes[:n]) * math.ceil(math.prod(sizes[n:]) / batch)

    def values(self) -> Iterator[str]:
        """Every value of every axis, once or more."""
        columns = self.rows if self.axes is None else self.axes.values()
        return itertools.chain.from_iterable(columns)


#: Values of an axis that are read twice, once to find twins.
FEW = 1000


def _refuse_twins(base: Scenario, points: Points) -> None:
    """A point that stands twice would count twice, with the same seeds. Values of long axes, and
    points of a list, are compared as they are written."""
    once = "\n  hint: every value stands once"
    for key, values in (points.axes or {}).items():
        if (twin := _twin(values)) is not None:
            raise _native.ScenarioError(f"error: axis `{key}`: `{twin}` stands twice{once}")
        if len(values) > FEW:
            continue
        # `20ms` and `0.02s` are one value. What is wrong otherwise a task tells.
        try:
            with warnings.catch_warnings(action="ignore"):
                base.matrix({key: values})
        except _native.ScenarioError as error:
            if "stands twice" in str(error):
                raise _native.ScenarioError(
                    f"error: axis `{key}`: a value stands twice, written in two ways{once}"
                ) from None
    if (twin := _twin([tuple(row) for row in points.rows])) is not None:
        raise _native.ScenarioError(
            f"error: the point {dict(zip(points.keys, twin, strict=True))} stands twice"
        )


def _twin(values: Sequence[Any]) -> Any:
    if len(set(values)) == len(values):
        return None
    known: set[Any] = set()
    for value in values:
        if value in known:
            return value
        known.add(value)
    return None


@dataclass
class Plan:
    """What decides the content of a sweep's files."""

    base: Scenario
    points: Points
    batch: int
    ground: str
    partition: tuple[str, ...]
    out: Path

    def __post_init__(self) -> None:
        origin, _, set, *rest = self.base._state
        files = files_named(self.base, self.points.values())
        hashes = sorted((path, hashlib.sha256(of).hexdigest()) for path, of in files.items())
        sets = [(key, as_set(value)) for key, value in set.items()]
        engine = _native.fingerprint(self.ground)
        texts = [self.base.text, *(value for _, value in sets), *self.points.values()]
        self.controllers = used_in(texts)
        code = [(cls.name, fingerprint(cls)) for cls in self.controllers]
        what = (engine, self.base.text, sets, rest, self.ground, hashes, code, self.points.keys)
        self.digest = hashlib.sha256(repr((what, self.partition)).encode()).hexdigest()

    def parts(self) -> Iterator[tuple[Path, int, list[list[str]]]]:
        """Every file with the index of its first point, and its points."""
        for first, some in self.points.parts(self.batch):
            own = hashlib.sha256(f"{self.digest}{some!r}".encode()).hexdigest()[:16]
            values = zip(self.partition, some[0], strict=False)
            folders = (f"{key}={quote(value, safe='')}" for key, value in values)
            yield self.out.joinpath(*folders, f"part-{first:09}-{own}.parquet"), first, some

    def claim(self, replace: bool) -> None:
        """Makes the directory that of this sweep.

        Raises :class:`ScenarioError` if it is another one's."""
        axes = self.points.axes
        points = self.points.rows if axes is None else list(axes.items())
        whole = hashlib.sha256(f"{self.digest}{self.batch}{points!r}".encode()).hexdigest()
        about = {
            "scenario": self.base.name,
            "axes": self.points.keys,
            "seeds": self.base.seeds,
            "ground": self.ground,
            "fullpipe": _native.__version__,
            "plan": whole,
        }
        file = self.out / PLAN
        known = None
        # Missing, or of nobody's sweep.
        with suppress(FileNotFoundError, ValueError, TypeError, KeyError):
            known = json.loads(file.read_text())["plan"]
        left = set(_files_in(self.out)) if known != whole else set()
        if left and not replace:
            raise _native.ScenarioError(
                f"error: {self.out} holds another sweep (scenario, axes, seeds, batch, ground, "
                "files or version differ)\n  hint: choose another directory, or replace=True "
                "(--replace) removes what this sweep has not"
            )
        for path, *_ in self.parts() if left else ():
            left.discard(path)
        for old in left:
            old.unlink()
            # Folders of axes that hold nothing more; one that another is filling is not empty.
            for folder in itertools.takewhile(lambda of: of != self.out, old.parents):
                with suppress(OSError):
                    folder.rmdir()
        self.out.mkdir(parents=True, exist_ok=True)
        write(file, (json.dumps(about, indent=2) + "\n").encode())


def _files_in(directory: Path) -> Iterator[Path]:
    """What sweeps have left here and in the folders of their axes. Files of others, and other
    directories, are nobody's to remove."""
    for entry in directory.iterdir() if directory.is_dir() else ():
        if FILE.fullmatch(entry.name):
            yield entry
        elif "=" in entry.name and not entry.is_symlink():
            yield from _files_in(entry)


def write(file: Path, content: bytes) -> None:
    """Whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own: another sweep may be writing the same file.
    temporary = file.with_name(f".{file.name}.{uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _is_whole(file: Path) -> bool:
    """There, and not cut short: the length of a Parquet file's footer stands before its last four
    bytes."""
    try:
        with file.open("rb") as of:
            size = of.seek(0, os.SEEK_END)
            of.seek(max(0, size - 8))
            footer, magic = of.read(4), of.read(4)
    except FileNotFoundError:
        return False
    return magic == b"PAR1" and int.from_bytes(footer, "little") + 12 <= size


@dataclass
class Workers:
    """An executor, and how to go on when it breaks."""

    submit: Callable[..., Any]
    close: Callable[[bool], object]
    renew: Callable[[], Workers] | None = None
    #: How many tasks run at once, as far as is known.
    width: Callable[[], int] = lambda: 0
    #: A task's content, from what it gave back.
    fetch: Callable[[Any], Any] = lambda content: content


def _workers(executor: Submits | int | None, spool: str) -> Workers:
    if executor is None:
        threads, stop = ThreadPoolExecutor(), _native.Stop()

        def close(early: bool) -> None:
            if early:
                stop.set()
            threads.shutdown(cancel_futures=True)

        def here(_: str, *task: Any) -> Any:
            return threads.submit(task_of_sweep, *(*task, stop))

        return Workers(here, close)
    if isinstance(executor, int):
        whole("executor", executor)
        # Not forked: this process may have threads.
        pool = ProcessPoolExecutor(executor, get_context("spawn"), initializer=_begun)

        def end(early: bool) -> None:
            # What they have in hand is of no use to anybody.
            for process in list(pool._processes.values()) if early else ():
                process.terminate()
            pool.shutdown(cancel_futures=True)

        def give(_: str, *task: Any) -> Any:
            with _interrupts_blocked():
                return pool.submit(_spooled, spool, *task)

        return Workers(give, end, lambda: _workers(executor, spool), fetch=_fetched)
    if not hasattr(executor, "submit"):
        raise _native.ScenarioError(
            f"error: executor {executor!r} has no `submit`\n  hint: an Executor, a Dask Client, or "
            "a number of processes"
        )
    theirs: Any = executor
    more = {"retries": DEATHS} if hasattr(executor, "scheduler_info") else {}

    def submit(name: str, *task: Any) -> Any:
        # Dask knows tasks by their keys; of its own making they would be the arguments' hashes.
        key = {"key": f"fullpipe-{name}-{uuid4().hex[:8]}"} if more else {}
        return theirs.submit(task_of_sweep, *task, **more, **key)

    def width() -> int:
        # A cluster may grow while it works.
        if hasattr(theirs, "nthreads"):
            return sum(theirs.nthreads().values())
        known: int = getattr(theirs, "num_workers", 0) or getattr(theirs, "_max_workers", 0)
        return known

    return Workers(submit, lambda early: None, width=width)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Processes that start within never see Ctrl-C, which is their driver's to answer."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _spooled(spool: str, *task: Any) -> str:
    """A task in a process of a pool, its content in a file. What goes through the pool's pipe is
    small enough to be written at once: the pool waits forever for the rest of what a killed process
    has written in part."""
    file = Path(spool, uuid4().hex)
    file.write_bytes(task_of_sweep(*task))
    return str(file)


def _fetched(file: Any) -> Any:
    content = Path(file).read_bytes()
    Path(file).unlink()
    return content


def _begun() -> None:
    """In a process of a pool, which ends with its driver."""
    Thread(target=_ends_with_its_parent, daemon=True).start()


def _ends_with_its_parent() -> None:
    driver = parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)


def _made(plan: Plan, workers: Workers, progress: Progress | None) -> list[Path]:
    files: list[Path] = []
    total, done, deaths = plan.points.tasks(plan.batch), 0, 0
    waiting: dict[Path, tuple[Any, ...]] = {}
    futures: dict[Path, Any] = {}
    ended: queue.SimpleQueue[Path] = queue.SimpleQueue()
    parts, more, early, fresh = plan.parts(), True, True, True
    ahead, asked = AHEAD, -AHEAD

    def send(path: Path, task: tuple[Any, ...]) -> None:
        try:
            future = workers.submit(path.stem, *task)
        except BrokenExecutor as error:
            # It has broken since its last answer, and is replaced in its turn.
            future = Future()
            future.set_exception(error)
        waiting[path], futures[path] = task, future
        # What cannot tell is asked in turn.
        if hasattr(future, "add_done_callback"):
            future.add_done_callback(lambda _: ended.put(path))
        else:
            ended.put(path)

    try:
        while more or waiting:
            if done - asked >= AHEAD:
                ahead, asked = max(AHEAD, 2 * workers.width()), done
            while more and len(waiting) < ahead:
                path, first, some = next(parts, (None, 0, []))
                if path is None:
                    more = False
                    break
                files.append(path)
                if _is_whole(path):
                    done += 1
                    continue
                part = (plan.points.keys, some, first, plan.partition)
                send(path, (plan.base, plan.controllers, *part, plan.ground))
            if not waiting:
                break
            path = ended.get()
            # One of an executor that has broken since.
            if path not in waiting:
                continue
            try:
                content = workers.fetch(futures[path].result())
            except BrokenExecutor as error:
                deaths += 1
                if workers.renew is None or deaths >= DEATHS:
                    raise _native.FullpipeError(
                        f"error: a worker died ({error})\n  hint: {STARTS if fresh else AGAIN}"
                    ) from error
                workers.close(True)
                workers = workers.renew()
                ended = queue.SimpleQueue()
                for path, task in waiting.items():
                    if _is_made(futures[path]):
                        ended.put(path)
                    else:
                        send(path, task)
                continue
            except CancelledError:
                raise _native.FullpipeError(
                    f"error: the executor cancelled a task\n  hint: {AGAIN}"
                ) from None
            if not isinstance(content, bytes):
                raise _native.FullpipeError(
                    f"error: the executor gave {type(content).__name__} for a task, not its bytes"
                )
            write(path, content)
            del waiting[path], futures[path]
            done, deaths, fresh = done + 1, 0, False
            if progress:
                progress(done, total)
        early = False
    except Exception:
        # What has begun is finished and kept; Ctrl-C waits for nothing.
        for future in futures.values():
            _cancel(future)
        for path, future in futures.items():
            with suppress(Exception, CancelledError):
                write(path, workers.fetch(future.result()))
        raise
    finally:
        for future in futures.values() if early else ():
            _cancel(future)
        workers.close(early)
    # Where nothing was missing, nothing has been told.
    if progress and fresh:
        progress(done, total)
    return files


def _is_made(future: Any) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _cancel(future: Any) -> None:
    # One of a cluster that is gone has nothing to cancel.
    with suppress(Exception):
        getattr(future, "cancel", lambda: None)()


def task_of_sweep(
    base: Scenario,
    controllers: tuple[type[Controller], ...],
    keys: list[str],
    points: list[list[str]],
    first: int,
    apart: tuple[str, ...],
    ground: str,
    stop: _native.Stop | None = None,
) -> bytes:
    """Runs some points on one processor; returns a Parquet file."""
    known(controllers)
    return _native.swept(
        base._native, keys, points, first=first, apart=apart, ground=ground, stop=stop
    )


__all__ = ["Submits", "sweep"]
