"""``python -m fullpipe sweep``: what the command ``fullpipe sweep`` runs."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from . import FullpipeError, Scenario, ScenarioError, sweep
from .sweeping import Submits

EXAMPLES = """examples:
  fullpipe sweep first-run --axis path.rtt=20ms,80ms --axis flow.main.stack=reno,cubic --out sweep
  fullpipe sweep my.toml --axis path.rate=1Gbit/s,10Gbit/s --seeds 20 --dask tcp://10.0.0.1:8786

The files in --out are one table: polars.scan_parquet("sweep/*.parquet"). A sweep that is started
again makes only what is missing; another one in the same directory needs --replace. A sweep holds
no expectations against its cases: `fullpipe run` does."""


def options() -> argparse.ArgumentParser:
    """What ``fullpipe sweep`` takes."""
    parser = argparse.ArgumentParser(
        prog="fullpipe sweep",
        description="Run a scenario over the product of axes, on this machine or a cluster.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenario", help="a built-in name or a file")
    parser.add_argument(
        "--axis", action="append", default=[], metavar="KEY=A,B,...", help="values of a key"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="seeds of every case")
    parser.add_argument("--batch", type=int, default=50, metavar="N", help="cases of a task")
    parser.add_argument("--ground", default="sim")
    parser.add_argument("--out", required=True, metavar="DIR", help="a Parquet file per task")
    parser.add_argument(
        "--precision", metavar="P", help="seeds are added until intervals are this narrow, as 2%%"
    )
    parser.add_argument(
        "--of", action="append", default=[], metavar="METRIC", help="that --precision asks it of"
    )
    parser.add_argument("--max-seeds", type=int, default=64, metavar="N", help="with --precision")
    parser.add_argument(
        "--partition", action="append", default=[], metavar="KEY", help="an axis becomes folders"
    )
    parser.add_argument(
        "--replace", action="store_true", help="remove what another sweep has left in DIR"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--dask", metavar="ADDRESS", help="the scheduler of a Dask cluster")
    where.add_argument("--processes", type=int, metavar="N", help="instead of threads")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--quiet", "-q", action="store_true")
    return parser


def main(args: list[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = options().parse_args(args)
    with warnings.catch_warnings():
        warnings.showwarning = _warned  # type: ignore[assignment]
        return _swept(given)


def _swept(given: argparse.Namespace) -> int:
    axes: dict[str, list[str]] = {}
    try:
        scenario = Scenario(given.scenario, set=dict(map(_pair, given.set)), quick=given.quick)
        for key, value in (_pair(axis, "KEY=A,B") for axis in given.axis):
            if key in axes:
                raise ScenarioError(
                    f"error: --axis {key}: given twice\n  hint: one axis has all values of a key, "
                    f"--axis {key}=A,B"
                )
            axes[key] = _values(value)
        for key, _ in map(_pair, given.set):
            if key in axes:
                raise ScenarioError(
                    f"error: --set {key}: an axis has that key\n  hint: keep one of the two"
                )
        begin = time.monotonic()
        with _executor(given.dask, given.processes) as executor:
            files = sweep(
                scenario,
                axes,
                seeds=given.seeds,
                executor=executor,
                out=given.out,
                batch=given.batch,
                ground=given.ground,
                precision=given.precision,
                of=given.of or ["goodput_mbps"],
                max_seeds=given.max_seeds,
                partition=given.partition,
                replace=given.replace,
                progress=False if given.quiet else _told,
            )
    except ScenarioError as error:
        said = str(error)
        for key in axes:
            said = said.replace(f"--set: `{key}", f"--axis: `{key}")
        print(said, file=sys.stderr)
        return 2
    except FullpipeError as error:
        print(error, file=sys.stderr)
        return 3
    except OSError as error:
        print(f"error: {error.filename or given.out}: {error.strerror}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print(f"interrupted: what is finished is in {given.out}", file=sys.stderr)
        return 130
    if not given.quiet:
        took = time.monotonic() - begin
        print(f"{len(files)} files in {given.out}, {took:.1f} s", file=sys.stderr)
    return 0


def _pair(text: str, expected: str = "KEY=VALUE") -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ScenarioError(f"error: `{text}`: {expected} is expected")
    return key.strip(), value.strip()


def _values(text: str) -> list[str]:
    """Split at the commas that stand in no bracket: stacks have parameters."""
    values, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            values.append(text[begin:i].strip())
            begin = i + 1
    return [*values, text[begin:].strip()]


def _warned(message: Warning | str, *_: object) -> None:
    print(f"warning: {message}", file=sys.stderr)


def _told(done: int, total: int) -> None:
    print(f"{done} of {total} tasks so far", file=sys.stderr)


@contextmanager
def _executor(dask: str | None, processes: int | None) -> Iterator[Submits | int | None]:
    if dask is not None:
        try:
            from distributed import Client
        except ImportError:
            raise FullpipeError(
                "error: --dask needs Dask\n  hint: pip install 'dask[distributed]'"
            ) from None
        with Client(dask) as client:  # type: ignore[no-untyped-call]
            yield client
    else:
        yield processes


if __name__ == "__main__":
    if sys.argv[1:2] == ["sweep"]:
        sys.exit(main(sys.argv[2:]))
    sys.exit("error: `python -m fullpipe sweep` is all there is; the rest is the command fullpipe")
