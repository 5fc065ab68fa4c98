#!/usr/bin/env python3
"""Holds `bbr`, version 3 after the draft, against the kernel of its authors.

    git clone --depth 1 --branch v3 https://github.com/google/bbr
    fullpipe linux build --source bbr --name bbr3
    scripts/bbr3.py run --fullpipe target/release/fullpipe --out results/bbr3
    scripts/bbr3.py tables results/bbr3      the tables of docs/bbr.md
    scripts/bbr3.py freeze results/bbr3      what the frozen test compares with

`run` executes the paths of scripts/bbr_timelines.toml with `bbr` in the place of `bbr-linux` on the
ground `sim` and on that kernel.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bbr_timelines import ROOT, SCENARIO, exported

FROZEN = ROOT / "crates" / "sim" / "tests" / "it" / "bbr3_kernel.txt"
STATES = ["startup", "drain", "down", "cruise", "refill", "up", "probe_rtt"]
DURATION = 40.0
WARMUP = 5.0
# Columns of a run.
COLUMNS = ["time_s", "var_state", "rtt_ms", "delivered_segments", "retransmits"]
COLUMNS += ["var_max_bw", "var_min_rtt", "var_inflight_longterm"]
TIME, STATE, RTT, DELIVERED, RETRANSMITS, BANDWIDTH, MIN_RTT, INFLIGHT = range(8)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    runs = verbs.add_parser("run")
    runs.add_argument("--out", required=True)
    runs.add_argument("--kernel", default="bbr3", help="its name in the cache [default: bbr3]")
    for verb in ("tables", "freeze"):
        verbs.add_parser(verb).add_argument("results")
    for sub in verbs.choices.values():
        sub.add_argument("--fullpipe", default=str(ROOT / "target" / "release" / "fullpipe"))
    args = parser.parse_args()
    if args.verb == "run":
        return run(args)
    results = {ground: read(Path(args.results) / ground, args.fullpipe) for ground in GROUNDS}
    if args.verb == "tables":
        print(table(results))
    else:
        FROZEN.write_text(frozen(results["linux"]))
        print(f"{FROZEN.relative_to(ROOT)}: written")
    return 0


GROUNDS = ["sim", "linux"]


def run(args):
    text = SCENARIO.read_text().replace("bbr-linux", "bbr").replace("Version 1", "Version 3")
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "bbr3.toml"
        scenario.write_text(text.replace('"bbr-timelines"', '"bbr3"'))
        for ground in GROUNDS:
            command = [args.fullpipe, "run", str(scenario), "--out", str(Path(args.out) / ground)]
            if ground == "linux":
                command += ["--ground", "linux", "--kernel", args.kernel]
            if subprocess.run(command).returncode != 0:
                sys.exit(f"failed: {' '.join(command)}")
    return 0


def read(where, fullpipe):
    """Measures of every seed, by path."""
    described = json.loads((where / "result.json").read_text())
    found = {}
    for index, case in enumerate(described["cases"]):
        runs = [measures(rows(where, fullpipe, index, seed)) for seed in case["seeds"]]
        found[case["params"]["on"]] = runs
    return found


def rows(where, fullpipe, case, seed):
    found = exported(where, fullpipe, case, seed, COLUMNS)
    return [row for row in found if row[STATE] is not None]


def measures(steps):
    """What the simulator is held to, as crates/sim/tests/it/bbr3_kernel.rs computes it: of 35 s
    behind the first five segments per second and ms; parts of the run in each state; segments per
    second, ms and segments, means over the time in ProbeBW."""
    late = [step for step in steps if step[TIME] >= WARMUP]
    first, last = late[0], late[-1]
    rtts = [step[RTT] for step in late if step[RTT] is not None]
    found = {
        "rate": (last[DELIVERED] - first[DELIVERED]) / (last[TIME] - first[TIME]),
        "rtt": statistics.mean(rtts),
        "retransmits": last[RETRANSMITS],
    }
    for name in ("drain", "probe_rtt"):
        state = STATES.index(name)
        found[f"{name}_begins"] = next(step[TIME] for step in steps if step[STATE] == state)
    spans = [(after[TIME] - step[TIME], step) for step, after in zip(steps, steps[1:])]
    for state, name in enumerate(STATES[2:], 2):
        found[name] = sum(s for s, step in spans if step[STATE] == state) / DURATION
    probing = [(s, step) for s, step in spans if 2 <= step[STATE] <= 5]
    estimates = (("max_bw", BANDWIDTH, 1), ("min_rtt", MIN_RTT, 1e3), ("inflight", INFLIGHT, 1))
    for name, column, unit in estimates:
        known = [(s, unit * step[column]) for s, step in probing if step[column] is not None]
        time = sum(s for s, _ in known)
        # Where nothing was lost there is no bound.
        if time > DURATION / 4:
            found[name] = sum(s * value for s, value in known) / time
    return found


def frozen(results):
    """Smallest and largest of what the kernel's runs measured, one line per path and measure."""
    text = "# By scripts/bbr3.py: path, measure, least and most of four runs of the kernel\n"
    for index, runs in enumerate(results.values()):
        for name in runs[0]:
            values = [run[name] for run in runs if name in run]
            text += f"{index} {name} {min(values):.6g} {max(values):.6g}\n"
    return text


def table(results):
    """Means over the seeds: the simulator, then the kernel."""
    heads = ["path", "Mbit/s", "mean RTT, ms", "retransmissions"]
    heads += ["DOWN, CRUISE, REFILL, UP, ProbeRTT, % of the time", "`inflight_longterm`"]
    text = f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"
    for path in results["sim"]:
        grounds = [results[ground][path] for ground in GROUNDS]
        def mean(name, unit=1.0):
            for runs in grounds:
                values = [unit * run[name] for run in runs if name in run]
                yield statistics.mean(values) if values else None
        pair = lambda name, form, unit=1.0: ", ".join(
            "-" if value is None else format(value, form) for value in mean(name, unit)
        )
        states = zip(*(list(mean(name, 100)) for name in STATES[2:]))
        parts = "; ".join(", ".join(f"{part:.1f}" for part in ground) for ground in states)
        cells = [path, pair("rate", ".2f", 1448 * 8e-6), pair("rtt", ".2f")]
        cells += [pair("retransmits", ".0f"), parts, pair("inflight", ".0f")]
        text += f"| {' | '.join(cells)} |\n"
    return text


if __name__ == "__main__":
    sys.exit(main())
