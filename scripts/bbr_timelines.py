#!/usr/bin/env python3
"""Holds the states of `bbr-linux` in the simulator against those in two kernels, over time.

    fullpipe linux build; fullpipe linux build --version 6.12
    scripts/bbr_timelines.py run --fullpipe target/release/fullpipe --out results/bbr-timelines
    scripts/bbr_timelines.py tables results/bbr-timelines      the tables of docs/bbr.md
    scripts/bbr_timelines.py freeze results/bbr-timelines      what the frozen test compares with

`run` executes scripts/bbr_timelines.toml on the ground `sim` and on both kernels of the ground
`linux`. A timeline is a step function of time, from the full trace: the state, the gain that tells
the phases of ProbeBW apart, the estimates of bandwidth and of the smallest RTT.
"""

import argparse
import csv
import io
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "scripts" / "bbr_timelines.toml"
FROZEN = ROOT / "crates" / "sim" / "tests" / "it" / "bbr_timelines.txt"
LINUX = ["--ground", "linux", "--kernel"]
GROUNDS = {
    "sim": [],
    "6.1": [*LINUX, "6.1"],
    "6.12": [*LINUX, "6.12"],
}
KERNELS = ["6.1", "6.12"]
STARTUP, DRAIN, PROBE_BW, PROBE_RTT = range(4)
PHASES = {"up": 1.25, "down": 0.75, "cruise": 1.0}
DURATION = 40.0
# Columns of a timeline's rows.
BANDWIDTH, MIN_RTT = 3, 4


def main():
    args = arguments()
    if args.verb == "run":
        return run(args)
    results = read(Path(args.results), args.fullpipe)
    if args.verb == "tables":
        print(states_table(results))
        print(agreement_table(results))
    else:
        FROZEN.write_text(frozen(results))
        print(f"{FROZEN.relative_to(ROOT)}: written")
    return 0


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    runs = verbs.add_parser("run")
    runs.add_argument("--out", required=True)
    runs.add_argument("--ground", choices=GROUNDS, action="append", help="[default: all]")
    for verb in ("tables", "freeze"):
        verbs.add_parser(verb).add_argument("results")
    for sub in verbs.choices.values():
        sub.add_argument("--fullpipe", default=str(ROOT / "target" / "release" / "fullpipe"))
    return parser.parse_args()


def run(args):
    for ground in args.ground or GROUNDS:
        out = Path(args.out) / ground
        command = [args.fullpipe, "run", str(SCENARIO), "--out", str(out), *GROUNDS[ground]]
        if subprocess.run(command).returncode != 0:
            sys.exit(f"failed: {' '.join(command)}")
    return 0


class Timeline:
    """Of one run: rows (time, state, gain, bandwidth, smallest RTT), the state's changes first."""

    def __init__(self, rows):
        self.rows = rows
        self.states = changes((time, state) for time, state, *_ in rows)
        # The kernel's first row is its first ACK.
        self.states[0] = (0.0, self.states[0][1])

    def begins(self, state):
        return [time for time, s in self.states if s == state]

    def probes(self):
        """(begin, end) of each ProbeRTT; the end of one that the run cuts off is None."""
        after = dict(zip((t for t, _ in self.states), [t for t, _ in self.states[1:]] + [None]))
        return [(time, after[time]) for time in self.begins(PROBE_RTT)]

    def share(self, state):
        """Part of the run spent in the state."""
        ends = [t for t, _ in self.states[1:]] + [DURATION]
        return sum(e - t for (t, s), e in zip(self.states, ends) if s == state) / DURATION

    def phases(self):
        """Mean length of each whole phase of ProbeBW, by name, s."""
        spells = changes((time, (state, round(gain, 2))) for time, state, gain, *_ in self.rows)
        found = {}
        for (begin, kind), (end, following) in zip(spells, spells[1:]):
            # The first after Drain or ProbeRTT and the last before it are no whole ones.
            if kind[0] == PROBE_BW and following[0] == PROBE_BW:
                found.setdefault(kind[1], []).append(end - begin)
        return {
            name: statistics.mean(found[gain]) if gain in found else None
            for name, gain in PHASES.items()
        }

    def mean(self, column):
        """Mean of an estimate over the time in ProbeBW."""
        total = over = 0.0
        for row, following in zip(self.rows, self.rows[1:]):
            if row[1] == PROBE_BW and row[column] is not None:
                total += row[column] * (following[0] - row[0])
                over += following[0] - row[0]
        return total / over


def changes(steps):
    """The first of each spell of equal values."""
    found = []
    for time, value in steps:
        if not found or found[-1][1] != value:
            found.append((time, value))
    return found


def same_state(one, other):
    """Part of the time in which both are in the same state."""
    times = sorted({t for line in (one, other) for t, _ in line.states} | {0.0, DURATION})
    together = 0.0
    for begin, end in zip(times, times[1:]):
        a, b = ([s for t, s in line.states if t <= begin] or [STARTUP] for line in (one, other))
        together += (end - begin) * (a[-1] == b[-1])
    return together / DURATION


def measures(line):
    """What the simulator is held to, as crates/sim/tests/it/bbr_timelines.rs computes it."""
    found = {"drain": line.begins(DRAIN)[0], "probe_bw": line.begins(PROBE_BW)[0]}
    found["probe_rtt"] = line.begins(PROBE_RTT)[0]
    whole = [end - begin for begin, end in line.probes() if end is not None]
    found["probe_rtt_lasts"] = statistics.mean(whole)
    found |= line.phases()
    found["bw"], found["min_rtt"] = line.mean(BANDWIDTH), line.mean(MIN_RTT)
    return found


def frozen(results):
    """Smallest and largest of what the kernels' runs measured, one line per path and measure."""
    text = "# By scripts/bbr_timelines.py: path, measure (s, segments/s), least and most of Linux\n"
    for index, grounds in enumerate(results.values()):
        runs = [measures(line) for ground in KERNELS for line in grounds[ground]]
        for name in runs[0]:
            values = [run[name] for run in runs if run[name] is not None]
            text += f"{index} {name} {min(values):.6g} {max(values):.6g}\n"
    return text


def states_table(results):
    """When the states begin: seed 1 on each ground."""
    text = "| path | | Drain | ProbeBW | ProbeRTT to ProbeBW |\n|---|---|---|---|---|\n"
    for path, grounds in results.items():
        for ground, lines in grounds.items():
            line = lines[0]
            probes = (f"{a:.3f} to {b:.3f}" if b else f"{a:.3f}" for a, b in line.probes())
            begins = " | ".join(f"{line.begins(state)[0]:.3f}" for state in (DRAIN, PROBE_BW))
            named = "simulator" if ground == "sim" else ground
            text += f"| {path} | {named} | {begins} | {', '.join(probes)} |\n"
            path = ""
    return text


def agreement_table(results):
    """Share of time in one state, lengths of the phases of ProbeBW, both estimates."""
    text = (
        "| path | same state, % | 1.25, ms | 0.75, ms | 1, ms | bandwidth, 1/s | least RTT, ms |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    for path, grounds in results.items():
        pairs = [("sim", "6.1"), ("sim", "6.12"), ("6.1", "6.12")]
        same = [statistics.mean(map(same_state, grounds[a], grounds[b])) for a, b in pairs]
        cells = [", ".join(f"{100 * part:.1f}" for part in same)]
        means = [[measures(line) for line in lines] for lines in grounds.values()]
        forms = {"up": (1e3, ".1f"), "down": (1e3, ".1f"), "cruise": (1e3, ".0f")}
        forms |= {"bw": (1, ".0f"), "min_rtt": (1e3, ".2f")}
        for name, (unit, form) in forms.items():
            mean = (unit * statistics.mean(run[name] for run in runs) for runs in means)
            cells.append(", ".join(format(value, form) for value in mean))
        text += f"| {path} | {' | '.join(cells)} |\n"
    return text


def read(results, fullpipe):
    """Timelines by path, ground, seed."""
    found = {}
    for ground in GROUNDS:
        where = results / ground
        described = json.loads((where / "result.json").read_text())
        for index, case in enumerate(described["cases"]):
            lines = found.setdefault(case["params"]["on"], {}).setdefault(ground, [])
            for seed in case["seeds"]:
                lines.append(timeline(where, fullpipe, index, seed))
    return found


def exported(where, fullpipe, case, seed, columns):
    """Rows of the first flow of a run, with these columns; None where one is empty."""
    command = [fullpipe, "export", str(where), "--to", "csv", "--flow", "main"]
    command += ["--case", str(case), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    lines = csv.reader(io.StringIO(done.stdout))
    head = next(lines)
    places = [head.index(name) for name in columns]
    return [tuple(float(line[i]) if line[i] else None for i in places) for line in lines]


def timeline(where, fullpipe, case, seed):
    names = ["time_s", "var_state", "var_pacing_gain", "var_bw", "var_min_rtt"]
    rows = exported(where, fullpipe, case, seed, names)
    return Timeline([row for row in rows if row[1] is not None])


if __name__ == "__main__":
    sys.exit(main())
