#!/usr/bin/env python3
"""Draws docs/img/bbr.svg: four congestion controls over buffers from half a BDP to sixteen.

Needs the result of the built-in scenario `bbr` and nothing else:

    fullpipe run bbr --out results/bbr
    python3 scripts/bbr_figure.py results/bbr
"""

import argparse
import json
import math
from pathlib import Path

# Okabe and Ito's colours, and a dash for those who cannot tell them apart.
STACKS = [
    ("bbr-linux", "BBR v1", "#d55e00", ""),
    ("bbr", "BBR v3", "#0072b2", ""),
    ("cubic", "CUBIC", "#009e73", "7 3"),
    ("reno", "Reno", "#7a4f9a", "2 3"),
]
ROWS = [
    ("alone", "one flow alone", ("goodput_mbps", "goodput, Mbit/s", 40, 50, 2)),
    ("four of a kind", "four of a kind", ("goodput_mbps", "goodput, Mbit/s", 40, 50, 2)),
    ("against CUBIC", "one against CUBIC", ("share", "share of goodput", 0, 1, 0.25)),
]
RTT = [40, 80, 160, 320, 640]
LOSS = [0.01, 0.1, 1, 10]

WIDTH, HEIGHT = 1080, 900
LEFT, TOP, PANEL_WIDTH, PANEL_HEIGHT, GAP_X, GAP_Y = 70, 118, 270, 190, 75, 64
INK, GREY = "#1a1a1a", "#555"


def buffers(result):
    """Buffers of the result in BDPs, smallest first."""
    found = {float(c["params"]["path.buffer"].removesuffix("BDP")) for c in result["cases"]}
    return sorted(found)


def values(result, company, stack, metric):
    """Means over the seeds, by buffer."""
    by_buffer = {}
    for case in result["cases"]:
        params = case["params"]
        if params["company"] != company or params["flow.main.stack"] != stack:
            continue
        flow = next(f for f in case["flows"] if f["name"] == "main")
        value = flow
        for part in metric.split("."):
            value = value[part]
        by_buffer[float(params["path.buffer"].removesuffix("BDP"))] = value
    return sorted(by_buffer.items())


class Panel:
    """A frame with a logarithmic axis of buffers."""

    def __init__(self, out, column, row, xs, low, high, ticks, log):
        self.out, self.xs, self.log = out, xs, log
        self.low, self.high = (math.log(low), math.log(high)) if log else (low, high)
        self.left = LEFT + column * (PANEL_WIDTH + GAP_X)
        self.top = TOP + row * (PANEL_HEIGHT + GAP_Y)
        self.bottom = self.top + PANEL_HEIGHT
        for tick in ticks:
            y = self.y(tick)
            out.append(f'<path d="M{self.left} {y:.1f}h{PANEL_WIDTH}" stroke="#ddd"/>')
            text(out, self.left - 8, y + 4, 12, "end", GREY, f"{tick:g}")
        for x in xs:
            out.append(f'<path d="M{self.x(x):.1f} {self.bottom}v5" stroke="{INK}"/>')
            text(out, self.x(x), self.bottom + 18, 12, "middle", GREY, f"{x:g}")
        out.append(
            f'<path d="M{self.left} {self.top}v{PANEL_HEIGHT}h{PANEL_WIDTH}" fill="none" '
            f'stroke="{INK}"/>'
        )

    def x(self, bdps):
        first, last = math.log(self.xs[0]), math.log(self.xs[-1])
        part = (math.log(bdps) - first) / (last - first)
        return self.left + PANEL_WIDTH * (0.04 + 0.92 * part)

    def y(self, value):
        v = math.log(max(value, 1e-9)) if self.log else value
        part = min(max((v - self.low) / (self.high - self.low), 0.0), 1.0)
        return self.bottom - PANEL_HEIGHT * part

    def curve(self, points, colour, dash):
        d = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.out.append(
            f'<polyline points="{d}" fill="none" stroke="{colour}" stroke-width="2.2" '
            f'stroke-dasharray="{dash}"/>'
        )
        for x, y in points:
            self.out.append(
                f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3" fill="{colour}"/>'
            )


def text(out, x, y, size, anchor, fill, words):
    out.append(
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
        f'fill="{fill}">{words}</text>'
    )


def draw(result):
    """The picture as SVG."""
    xs = buffers(result)
    seeds = len(result["cases"][0]["seeds"])
    title = "BBR v1 and v3, CUBIC and Reno over buffers"
    about = (
        f"50 Mbit/s, 40 ms, drop-tail buffers of {xs[0]:g} to {xs[-1]:g} BDP; "
        f"means over {seeds} seed{'s' if seeds != 1 else ''} of 120 s, the first 30 s left out"
    )
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="Ubuntu, sans-serif" fill="{INK}">',
        f"<title>{title}: {about}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    text(out, LEFT, 32, 20, "start", INK, title)
    text(out, LEFT, 54, 14, "start", GREY, about)
    for i, (_, name, colour, dash) in enumerate(STACKS):
        x = WIDTH - 470 + 115 * i
        out.append(
            f'<path d="M{x} 27h30" stroke="{colour}" stroke-width="2.2" '
            f'stroke-dasharray="{dash}"/>'
        )
        text(out, x + 36, 32, 14, "start", INK, name)
    for row, (company, heading, first) in enumerate(ROWS):
        columns = [
            (*first[:2], first[2], first[3], ticks(*first[2:]), False),
            ("rtt_ms.mean", "mean RTT, ms", RTT[0] / 1.05, RTT[-1], RTT, True),
            ("loss_rate", "segments lost, %", LOSS[0], 2 * LOSS[-1], LOSS, True),
        ]
        for column, (metric, unit, low, high, at, log) in enumerate(columns):
            panel = Panel(out, column, row, xs, low, high, at, log)
            head = f"{heading}: {unit}" if column == 0 else unit
            text(out, panel.left, panel.top - 10, 13, "start", INK, head)
            if row == len(ROWS) - 1:
                middle = panel.left + PANEL_WIDTH / 2
                text(out, middle, panel.bottom + 38, 13, "middle", INK, "buffer, BDP")
            for stack, _, colour, dash in STACKS:
                points = values(result, company, stack, metric)
                if metric == "loss_rate":
                    points = [(x, 100 * y) for x, y in points]
                panel.curve(points, colour, dash)
    note = "No loss at all is drawn on the lower edge, 0.01 %."
    text(out, WIDTH - 20, HEIGHT - 14, 12, "end", GREY, note)
    out.append("</svg>")
    return "\n".join(out) + "\n"


def ticks(low, high, step):
    return [low + step * i for i in range(round((high - low) / step) + 1)]


def main():
    default = Path(__file__).resolve().parent.parent / "docs/img/bbr.svg"
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("result", type=Path, help="result directory of the scenario `bbr`")
    parser.add_argument("--to", type=Path, default=default, help="default: docs/img/bbr.svg")
    args = parser.parse_args()
    result = json.loads((args.result / "result.json").read_text(encoding="utf-8"))
    if result["scenario"] != "bbr":
        parser.error(f"{args.result} is not a result of the scenario `bbr`")
    args.to.write_text(draw(result), encoding="utf-8")


if __name__ == "__main__":
    main()
