#!/usr/bin/env python3
"""Print the table of agreement of the directories of `fullpipe agree`, in markdown.

    scripts/agreement.py DIR...
"""

import argparse
import json
import re
from pathlib import Path

# Metric, heading, digits, and how far apart two grounds may be.
METRICS = [
    ("goodput_mbps", "goodput, Mbit/s", 4, 0.03),
    ("rtt_ms.mean", "mean RTT, ms", 4, 0.05),
    ("loss_events", "loss events", 3, 0.20),
    ("recovery_time_s", "recovery, s", 3, 0.10),
]
# Loss events are judged of these.
LOSS_BASED = ("reno", "cubic")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dirs", nargs="+", type=Path, metavar="DIR")
    args = parser.parse_args()
    for directory in args.dirs:
        print(study(json.loads((directory / "agreement.json").read_text())))


def study(found):
    """The tables of one study: a section, then a row per case."""
    grounds = found["grounds"]
    cases = collect(found)
    rates = sorted({rate(case["params"]) for case in cases.values()})
    out = []
    count = {g: [0, 0] for g in grounds[1:]}
    lines = []
    for case in cases.values():
        lines.append(row(case, grounds, count))
    head = " | ".join(f"{title}: {', '.join(grounds)}" for _, title, _, _ in METRICS)
    out.append(f"### {', '.join(rates)}\n")
    for ground, (within, all_) in count.items():
        out.append(f"`{ground}` beside `{grounds[0]}`: {within} of {all_} numbers within bounds.\n")
    out.append(f"| stack, RTT, buffer | {head} | cause, switched |")
    out.append("|---" * (len(METRICS) + 2) + "|")
    return "\n".join(out + lines) + "\n"


def rate(params):
    """The rate of a case, as the scenario writes it."""
    return str(params.get("path.rate", ""))


def collect(found):
    """Numbers by case: of the first ground and of each other one."""
    cases = {}
    for pair, ground in zip(found["pairs"], found["grounds"][1:]):
        left_out = [key(p) for p in pair["left_out"]]
        for r in pair["comparison"]["rows"]:
            if r["metric"] not in {m for m, *_ in METRICS} or r.get("flow") is None:
                continue
            case = cases.setdefault(
                key(r["params"]), {"params": r["params"], "values": {}, "causes": {}}
            )
            case["values"].setdefault(r["metric"], {found["grounds"][0]: r["a"]["mean"]})
            case["values"][r["metric"]][ground] = r["b"]["mean"]
        for params in pair["left_out"]:
            case = cases.setdefault(key(params), {"params": params, "values": {}, "causes": {}})
            case["causes"].setdefault(ground, []).append("flagged")
        for tried in pair["causes"]:
            for one in tried.get("cases", []):
                case = cases.get(key(one["params"]))
                if case is not None and key(one["params"]) not in left_out:
                    case["causes"].setdefault(ground, []).append(
                        (tried["cause"], one["verdict"], one["before"], one["after"])
                    )
    return cases


def key(params):
    """A case as a dictionary's key."""
    return json.dumps(params, sort_keys=True)


def row(case, grounds, count):
    """A line of the table."""
    params = case["params"]
    stack = params["flow.main.stack"].removesuffix("-linux")
    cells, outside = [], set()
    for metric, _, digits, bound in METRICS:
        values = case["values"].get(metric, {})
        first = values.get(grounds[0])
        shown = []
        for ground in grounds:
            value = values.get(ground)
            judged = metric != "loss_events" or stack in LOSS_BASED
            if ground != grounds[0] and ground in values and judged:
                ok = close(first, value, bound)
                count[ground][0] += ok
                count[ground][1] += 1
                if not ok:
                    outside.add(ground)
                    shown.append(f"**{number(value, digits)}**")
                    continue
            shown.append(number(value, digits))
        cells.append(", ".join(shown))
    cause = []
    for ground in grounds[1:]:
        told = causes(case["causes"].get(ground, []), ground in outside)
        if told:
            cause.append(f"{ground}: {told}")
    name = f"{stack}, {params['path.rtt']}, {params['path.buffer']}"
    return f"| {name} | {' | '.join(cells)} | {'; '.join(cause)} |"


def close(a, b, bound):
    """Whether two means are within a relative bound of one another."""
    if a is None or b is None:
        return a is None and b is None
    return abs(b - a) <= bound * max(abs(a), abs(b)) + 1e-12


def number(value, digits):
    """With so many significant digits, without an exponent."""
    if value is None:
        return "-"
    text = f"{value:#.{digits}g}"
    if "e" in text:
        text = f"{value:.0f}"
    return re.sub(r"\.$", "", text)


def causes(tried, is_outside):
    """What explains a case, or what was tried in vain."""
    if "flagged" in tried:
        return "flagged"
    if not is_outside or not tried:
        return ""
    explained = [c for c, verdict, *_ in tried if verdict == "explains"]
    part = [f"{c} {before} to {after}" for c, verdict, before, after in tried if verdict == "in-part"]
    if explained:
        return ", ".join(explained)
    return f"in part {', '.join(part)}" if part else "none of those tried"


if __name__ == "__main__":
    main()
