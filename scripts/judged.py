#!/usr/bin/env python3
"""What a change of the program moves in the numbers that expectations judge.

    scripts/judged.py --before old/fullpipe --after target/release/fullpipe reverse ucl
    scripts/judged.py --before ... --after ... --scenarios old/scenarios reverse

Runs each scenario with both programs (`--quick`, unless --full) and prints a row per scenario: how
many values are equal, and the largest change of each expectation. With --scenarios both programs
run the files of that folder: what remains of a change is the program's, not the scenario's.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path


def main():
    args = arguments()
    print("| scenario | equal | changed | largest changes |\n|---|---:|---:|---|")
    for name in args.scenario:
        scenario = str(Path(args.scenarios) / f"{name}.toml") if args.scenarios else name
        before, after = (judged(p, scenario, args.full) for p in (args.before, args.after))
        changed = [key for key in before if key in after and before[key] != after[key]]
        equal = len(set(before) & set(after)) - len(changed)
        words = largest({key: (before[key], after[key]) for key in changed})
        if set(before) != set(after):
            words.append(f"other expectations: {len(before)} before, {len(after)} after")
        print(f"| `{name}` | {equal} | {len(changed)} | {'; '.join(words)} |", flush=True)
    return 0


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenario", nargs="+", help="names of built-in scenarios")
    parser.add_argument("--before", required=True, help="a program")
    parser.add_argument("--after", required=True, help="another one")
    parser.add_argument("--scenarios", help="folder of files that both run in their place")
    parser.add_argument("--full", action="store_true", help="not --quick")
    return parser.parse_args()


def judged(program, scenario, full):
    """Observed values by expectation, metric and case."""
    command = [program, "run", scenario, "--jobs", "1", "--format", "json"]
    done = subprocess.run(command + ([] if full else ["--quick"]), capture_output=True, text=True)
    if done.returncode > 1:
        sys.exit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    found = {}
    for expectation in json.loads(done.stdout)["expectations"]:
        case = json.dumps(expectation["params"], sort_keys=True)
        key = (expectation["name"], expectation["metric"], case)
        # An expectation may judge one metric of a case more than once.
        while key in found:
            key = (*key, "again")
        found[key] = expectation.get("observed")
    return found


def largest(changes):
    """Of each expectation the case that changed most."""
    worst = {}
    for (name, metric, *_), (a, b) in changes.items():
        known = isinstance(a, (int, float)) and isinstance(b, (int, float)) and a
        part = abs(b / a - 1) if known else float("inf")
        if part >= worst.get((name, metric), (-1,))[0]:
            worst[name, metric] = (part, a, b)
    return [
        f"{name} ({metric}): {a:.5g} -> {b:.5g}" if part < float("inf") else f"{name}: {a} -> {b}"
        for (name, metric), (part, a, b) in sorted(worst.items(), key=lambda item: -item[1][0])
    ]


if __name__ == "__main__":
    sys.exit(main())
