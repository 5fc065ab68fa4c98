#!/usr/bin/env python3
"""Are the results the same, to the last bit?

Records every built-in scenario's rows (runs.parquet, links.parquet) and its JSON, and holds a later
build against the record. What may differ between two builds of one engine is left out: wall time,
speed, memory, version and fingerprint.

    same_results.py record --fullpipe target/release/fullpipe --to results-before.json [--full]
    same_results.py check  --fullpipe target/release/fullpipe --baseline results-before.json

Exit codes: 0 equal; 1 different (each difference is named by scenario, row and column); 2 usage;
3 pyarrow is missing.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

try:
    import pyarrow.parquet as parquet
except ImportError:
    print("same_results.py: pyarrow is missing: pip install pyarrow", file=sys.stderr)
    sys.exit(3)

# Depends on the machine or the build, not on the engine's arithmetic.
VOLATILE = {"wall_s", "packets_per_s", "cpu_s", "peak_memory_mb", "fullpipe", "engine", "cost"}


def main():
    args = arguments()
    if args.verb == "record":
        record = {
            "full": args.full,
            "scenarios": {n: run(args, n, args.full) for n in names(args)},
        }
        Path(args.to).write_text(json.dumps(record))
        print(f"{len(record['scenarios'])} scenarios recorded in {args.to}")
        return 0
    return check(args)


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("record", "check"):
        sub = verbs.add_parser(verb)
        sub.add_argument("--fullpipe", required=True, help="the program")
        sub.add_argument("--only", nargs="*", default=[], help="these scenarios alone")
        sub.add_argument("--except", dest="without", nargs="*", default=[], help="not these")
        sub.add_argument("--jobs", type=int, default=0, help="threads [default: all]")
    verbs.choices["record"].add_argument("--to", required=True)
    verbs.choices["record"].add_argument(
        "--full", action="store_true", help="the full variants [default: --quick]"
    )
    verbs.choices["check"].add_argument("--baseline", required=True)
    verbs.choices["check"].add_argument("--show", type=int, default=8, help="differences shown")
    return parser.parse_args()


def names(args):
    """Built-in scenarios; a study is the sum of its parts and left out."""
    listed = subprocess.run(
        [args.fullpipe, "list", "scenarios", "--format", "json"],
        capture_output=True, text=True, check=True,
    )
    found = [s["name"] for s in json.loads(listed.stdout)["scenarios"] if not s.get("study")]
    if args.only:
        found = [n for n in found if n in args.only]
    found = [n for n in found if n not in args.without]
    if not found:
        sys.exit("same_results.py: no scenario of that name")
    return found


def run(args, name, full):
    """Columns of both tables and the JSON of one scenario, as text that keeps every bit."""
    started = time.monotonic()
    out = Path(tempfile.mkdtemp(prefix="same-results-"))
    try:
        command = [args.fullpipe, "run", name, "--format", "json", "--quiet"]
        command += ["--out", str(out / "r")]
        command += [] if full else ["--quick"]
        command += ["--jobs", str(args.jobs)] if args.jobs else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            sys.exit(f"same_results.py: {' '.join(command)}: exit {done.returncode}\n{done.stderr}")
        result = {
            "json": steady(json.loads(done.stdout)),
            "exit": done.returncode,
            "tables": {t: table(out / "r" / t) for t in ("runs.parquet", "links.parquet")},
        }
    finally:
        shutil.rmtree(out, ignore_errors=True)
    print(f"  {name}: {time.monotonic() - started:.1f} s", file=sys.stderr)
    return result


def table(path):
    """Column name -> list of values as text; floats as hexadecimal, so that no bit is lost."""
    if not path.exists():
        return {}
    columns = parquet.read_table(path).to_pydict()
    return {n: [exact(v) for v in values] for n, values in columns.items() if n not in VOLATILE}


def exact(value):
    return value.hex() if isinstance(value, float) else repr(value)


def steady(node):
    if isinstance(node, dict):
        return {k: steady(v) for k, v in node.items() if k not in VOLATILE}
    if isinstance(node, list):
        return [steady(v) for v in node]
    return exact(node) if isinstance(node, float) else node


def check(args):
    baseline = json.loads(Path(args.baseline).read_text())
    wanted = baseline["scenarios"]
    different = compared = 0
    here = names(args)
    for missing in [n for n in wanted if n not in here and not args.only and n not in args.without]:
        print(f"{missing}: no longer built in")
        different += 1
    for name in here:
        if name not in wanted:
            print(f"{name}: new, not in the baseline")
            continue
        compared += 1
        found = differences(wanted[name], run(args, name, baseline["full"]))
        different += bool(found)
        for line in found[: args.show]:
            print(f"{name}: {line}")
        if len(found) > args.show:
            print(f"{name}: ... and {len(found) - args.show} more")
    if not compared:
        print("no scenario is in the baseline", file=sys.stderr)
        return 2
    print("different" if different else f"equal to the last bit: {compared} scenarios")
    return 1 if different else 0


def differences(before, after):
    found = []
    if before["exit"] != after["exit"]:
        found.append(f"exit code {before['exit']} before, {after['exit']} now")
    for file, columns in before["tables"].items():
        now = after["tables"][file]
        found += [f"{file}: column {c} is gone" for c in columns if c not in now]
        found += [f"{file}: column {c} is new" for c in now if c not in columns]
        for column, values in columns.items():
            if column not in now:
                continue
            if len(values) != len(now[column]):
                found.append(f"{file}: {len(values)} rows before, {len(now[column])} now")
                break
            for row, (a, b) in enumerate(zip(values, now[column])):
                if a != b:
                    was_is = f"{readable(a)} before, {readable(b)} now"
                    found.append(f"{file}: row {row}, {column}: {was_is}")
    walk("json", before["json"], after["json"], found)
    return found


def walk(place, a, b, found):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            if key not in a or key not in b:
                found.append(f"{place}.{key} is {'new' if key not in a else 'gone'}")
            else:
                walk(f"{place}.{key}", a[key], b[key], found)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            walk(f"{place}[{i}]", x, y, found)
    elif a != b:
        found.append(f"{place}: {readable(a)} before, {readable(b)} now")


def readable(value):
    try:
        if isinstance(value, str) and "0x" in value:
            return repr(float.fromhex(value))
    except ValueError:
        pass
    return str(value)[:200]


if __name__ == "__main__":
    sys.exit(main())
