#!/usr/bin/env python3
"""One early loss on a long path, tuned and untuned: the figure of the Net100 pages, measured here.

An unmodified iperf3 and an unmodified curl send over `fullpipe emulate` (622 Mbit/s, 80 and 160 ms)
to a host that the emulator makes. `fullpipe tune inject` takes the 21st segment, so that slow start
ends at some ten segments, and the rest of the way is the law's: Reno and CUBIC as the kernel has
them (untuned), HighSpeed TCP and an AIMD that is pre-tuned for the path (by `fullpipe tune run`,
which the programs do not know of). `fullpipe tune watch` records every ACK; the same scenario runs
in the simulator, whose window is drawn into the same panel, with the area between both.

    scripts/net100.py --fullpipe target/release/fullpipe --out results/net100

Runs that OUT holds are kept: to draw again costs nothing, to measure anew takes another OUT. Needs
root, iperf3, curl, ip(8) and a fullpipe with the tuner; the host's own network is not touched.
Writes docs/img/net100.svg (--figure) and prints the table in markdown.
"""

import argparse
import csv
import json
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

RATE_MBIT, MTU, MSS = 622, 1500, 1448
RTTS_MS = [80, 160]
LOST = 20  # by number, from 0: the 21st
CURL_BYTES = 12_000_000
# The data connection alone is to lose a segment: iperf3's other one has another local port.
LOCAL_PORT, CURL_PORT = 21021, 8021
DEVICE = "fullpipe0"  # of a host that `emulate` makes
STEP = 0.05  # between two points of a curve, s
TRIES = 3  # of a run whose path the emulator does not vouch for


def bdp(rtt_ms):
    """Packets that the path holds."""
    return int(RATE_MBIT * 1e6 * rtt_ms / 1e3 / 8 / MTU)


class Law:
    """One line of the figure: what the flow runs, and what the simulator calls it."""

    def __init__(self, key, heading, colour, stack, tuned):
        self.key, self.heading, self.colour = key, heading, colour
        self.stack, self.tuned = stack, tuned

    def spelled(self, rtt_ms):
        return self.stack.format(window=bdp(rtt_ms))


# Okabe and Ito's colours.
LAWS = [
    Law("reno", "Reno, untuned", "#7a4f9a", "reno", False),
    Law("cubic", "CUBIC, untuned", "#009e73", "cubic-linux", False),
    Law("highspeed", "HighSpeed, tuned", "#d55e00", "highspeed", True),
    Law("pretuned", "pre-tuned AIMD, tuned", "#0072b2", "pretuned(window={window})", True),
]


# -- on the near host of the emulated path --------------------------------------------------------


@contextmanager
def own_group():
    """A control group of this run: only its flows are given a path as they begin."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    root = Path(next(line.split()[4] for line in mounts if " - cgroup2 " in line))
    group = root / f"fullpipe-net100-{os.urandom(4).hex()}"
    group.mkdir()
    try:
        yield group
    finally:
        group.rmdir()


@contextmanager
def beside(words, log, ready, end=signal.SIGINT):
    """A program that runs meanwhile, from the moment at which `ready` is so."""
    with open(log, "w+") as out:
        process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT)
        try:
            until = time.monotonic() + 10
            while not ready(process, Path(log).read_text()):
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"{shlex.join(map(str, words))}\n{Path(log).read_text()}")
                time.sleep(0.02)
            yield process
        finally:
            process.send_signal(end)
            process.wait(timeout=30)


def says(word):
    return lambda _, text: re.search(word, text, re.MULTILINE) is not None


def looks(process, _):
    """Its program is in the kernel."""
    held = Path(f"/proc/{process.pid}/fd")
    try:
        return any("bpf_link" in os.readlink(fd) for fd in held.iterdir())
    except OSError:
        return False


def near(job):
    """One transfer, from the near host."""
    far, folder, program = os.environ["FULLPIPE_FAR"], Path(job["folder"]), job["fullpipe"]
    # The device sends single segments, so that a single one can be lost.
    subprocess.run(["ip", "link", "set", "dev", DEVICE, "gso_max_segs", "1"], check=True)
    with ExitStack() as until:
        group = None
        if job["policy"]:
            group = until.enter_context(own_group())
            policy = folder / "policy.toml"
            policy.write_text(job["policy"].format(far=far))
            daemon = [program, "tune", "run", policy, "--state", folder / "state"]
            daemon += ["--own-namespace", "--cgroup", group]
            log = folder / "daemon.log"
            until.enter_context(beside(daemon, log, says("^ready$"), signal.SIGTERM))
        else:
            # The program is not told: the route to the far host names the algorithm.
            route = ["ip", "route", "replace", far, "dev", DEVICE, "congctl", job["law"]]
            subprocess.run(route, check=True)
        watch = [program, "tune", "watch", "--to", far, "--port", str(LOCAL_PORT), "--format"]
        watch += ["none", "--trace", folder / "ack.parquet"]
        until.enter_context(beside(watch, folder / "watch.log", looks))
        inject = [program, "tune", "inject", "--to", far, "--port", str(LOCAL_PORT), "--at"]
        inject += [str(LOST), "--duration", "2min", "--i-mean-it", "--json"]
        inject += ["--state", folder / "inject"]
        until.enter_context(beside(inject, folder / "inject.log", says("^begun on")))
        words = {
            "iperf3": ["iperf3", "-c", far, "-t", str(job["seconds"]), "-J", "--cport"]
            + [str(LOCAL_PORT)],
            "curl": ["curl", "-sS", "-T", folder / "upload", "-H", "Expect:", "--local-port"]
            + [str(LOCAL_PORT), "-w", "%{json}", f"http://{far}:{CURL_PORT}/"],
        }
        join = (lambda: (group / "cgroup.procs").write_text("0")) if group else None
        ran = subprocess.run(words[job["program"]], capture_output=True, text=True, preexec_fn=join)
    if ran.returncode != 0:
        raise SystemExit(f"{job['program']}: {ran.stdout[-2000:]}{ran.stderr}")
    lost = json.loads((folder / "inject.log").read_text().splitlines()[-1])
    if lost["lost_segments"] != 1:
        raise SystemExit(f"one segment was to be lost: {lost}")
    (folder / f"{job['program']}.json").write_text(ran.stdout)


class Sink(BaseHTTPRequestHandler):
    """What curl sends a file to."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        left = int(self.headers["Content-Length"])
        while left > 0 and (got := self.rfile.read1(min(left, 1 << 20))):
            left -= len(got)
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


# -- measuring ------------------------------------------------------------------------------------


def measure(options, program, law, rtt_ms, k):
    """The folder of one run, which is made unless it is there."""
    folder = options.out / f"{program}-{law.key}-{rtt_ms}ms-{k}"
    if (folder / "whole").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = f"[[path]]\nname = \"long\"\nto = \"{{far}}\"\nrate = \"{RATE_MBIT}Mbit/s\"\n"
    path += f"rtt = \"{rtt_ms}ms\"\nstack = \"{law.spelled(rtt_ms)}\"\n"
    job = {
        "folder": str(folder), "fullpipe": options.fullpipe, "program": program, "law": law.key,
        "seconds": options.seconds, "policy": path if law.tuned else None,
    }
    here = [sys.executable, "-B", str(Path(__file__).resolve())]
    far = "iperf3 -s -1 >/dev/null" if program == "iperf3" else shlex.join([*here, "--far"])
    if program == "curl":
        (folder / "upload").write_bytes(bytes(CURL_BYTES))
    words = [*shlex.split(options.by), options.fullpipe, "emulate", "--rate", f"{RATE_MBIT}Mbit/s"]
    words += ["--rtt", f"{rtt_ms}ms", "--format", "json", "--out", str(folder / "path.json")]
    words += ["--far", far, "--", *here, "--near", json.dumps(job)]
    for _ in range(TRIES):
        ran = subprocess.run(words, capture_output=True, text=True)
        if ran.returncode not in (0, 5):
            raise SystemExit(f"{folder.name}: {ran.stdout}{ran.stderr}")
        if json.loads((folder / "path.json").read_text())["true"]:
            break
    (folder / "upload").unlink(missing_ok=True)
    export(options, folder / "ack.parquet", folder / "ack.csv")
    (folder / "ack.parquet").unlink()
    (folder / "whole").touch()
    return folder


def export(options, trace, to, case=()):
    words = [options.fullpipe, "export", trace, "--to", "csv", "--every", f"{STEP * 1000:.0f}ms"]
    subprocess.run([*words, *case, "--out", to], check=True, capture_output=True)


SCENARIO = """name = "net100-early-loss"
about = "One early loss on the path of scripts/net100.py"
duration = "{seconds}s"

[path]
rate = "{rate}Mbit/s"
rtt = "{rtt}ms"
buffer = "1BDP"

[[flow]]
name = "main"
stack = "{stack}"
preset = "linux"
drop = {{ segment = {lost} }}

[measure]
recovered_at = {{ rate = 0.95 }}
"""


def simulate(options, law, rtt_ms, seconds):
    """The folder of the same flow in the simulator."""
    folder = options.out / f"sim-{law.key}-{rtt_ms}ms-{seconds}s"
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        file = folder / "scenario.toml"
        stack = law.spelled(rtt_ms)
        file.write_text(SCENARIO.format(
            seconds=seconds, rate=RATE_MBIT, rtt=rtt_ms, stack=stack, lost=LOST))
        words = [options.fullpipe, "run", file, "--out", folder / "result", "--quiet"]
        subprocess.run(words, check=True, capture_output=True)
        export(options, folder / "result", folder / "ack.csv", ["--flow", "main"])
        (folder / "whole").touch()
    return folder


# -- what came of it ------------------------------------------------------------------------------


def window(folder):
    """Seconds since the reduction and the window in segments, from the reduction on."""
    rows, begin = [], None
    with open(folder / "ack.csv", newline="") as file:
        for row in csv.DictReader(file):
            if begin is None and row["ssthresh"]:
                begin = float(row["time_s"])
            if begin is not None and row["cwnd"]:
                rows.append((float(row["time_s"]) - begin, float(row["cwnd"])))
    if not rows:
        raise SystemExit(f"{folder.name}: no reduction was seen")
    return rows


def at(rows, t):
    """The window at a time."""
    before = [w for when, w in rows if when <= t]
    return before[-1] if before else rows[0][1]


def stepped(rows, end):
    """The window every STEP."""
    out, k = [], 0
    for i in range(int(end / STEP) + 1):
        while k + 1 < len(rows) and rows[k + 1][0] <= i * STEP:
            k += 1
        out.append(rows[k][1])
    return out


def area(kernel, simulated):
    """`cwnd_area` of docs/metrics.md: what lies between two windows, of what is below one."""
    between = sum(abs(a - b) for a, b in zip(simulated, kernel))
    return between / sum(simulated[: len(kernel)])


class Cell:
    """What the runs of one law on one path gave."""

    def __init__(self, options, law, rtt_ms):
        self.law, self.rtt_ms = law, rtt_ms
        runs = [measure(options, "iperf3", law, rtt_ms, k) for k in range(options.repeat)]
        loads = [measure(options, "curl", law, rtt_ms, k) for k in range(options.repeat)]
        rates = [self.rate(folder) for folder in runs]
        self.mbps, self.mbps_all = statistics.median_low(rates), sorted(rates)
        self.curl_s = statistics.median(
            json.loads((f / "curl.json").read_text())["time_total"] for f in loads)
        verdicts = [json.loads((f / "path.json").read_text()) for f in runs + loads]
        self.flagged = sum(not verdict["true"] for verdict in verdicts)
        self.runs = len(verdicts)
        chosen = window(runs[rates.index(self.mbps)])
        # The last round trip of iperf3 has nothing to send any more.
        self.end = min(options.seconds, chosen[-1][0]) - 1
        self.kernel = stepped(chosen, self.end)
        simulated = window(simulate(options, law, rtt_ms, options.seconds + 1))
        self.simulated = stepped(simulated, self.end)
        self.area = area(self.kernel, self.simulated)
        self.reached = self.first(self.kernel)
        long = simulate(options, law, rtt_ms, FORECAST_S[law.key] * (rtt_ms // 80) ** 2)
        result = json.loads((long / "result" / "result.json").read_text())
        self.forecast = result["cases"][0]["flows"][0]["recovery_time_s"]
        if isinstance(self.forecast, dict):
            self.forecast = self.forecast["mean"]

    @staticmethod
    def rate(folder):
        end = json.loads((folder / "iperf3.json").read_text())["end"]
        return end["sum_received"]["bits_per_second"] / 1e6

    def first(self, curve):
        """When the window holds 95 % of the path for the first time."""
        full = 0.95 * bdp(self.rtt_ms)
        return next((i * STEP for i, w in enumerate(curve) if w >= full), None)


# Long enough for the simulator to come back to the full rate, at 80 ms; what grows by round trips
# takes four times as long with twice as many segments.
FORECAST_S = {"reno": 420, "cubic": 60, "highspeed": 90, "pretuned": 45}


def table(cells, options):
    """In markdown."""
    out = [
        f"| path | law | iperf3, {options.seconds} s, Mbit/s | of CUBIC's | curl, "
        f"{CURL_BYTES / 1e6:g} MB, s | window after 10 s, segments: kernel | simulator | "
        "area between the windows | full rate again, s: kernel | simulator |",
        "|---" * 10 + "|",
    ]
    for cell in cells:
        cubic = next(c for c in cells if (c.law.key, c.rtt_ms) == ("cubic", cell.rtt_ms))
        tenth = int(10 / STEP)
        reached = f"{cell.reached:.1f}" if cell.reached is not None else f"> {cell.end:.0f}"
        forecast = f"{cell.forecast:.1f}" if cell.forecast is not None else "-"
        out.append(
            f"| {cell.rtt_ms} ms | {cell.law.heading} | {cell.mbps:.1f} | "
            f"{cell.mbps / cubic.mbps:.2f} | {cell.curl_s:.2f} | {cell.kernel[tenth]:.0f} | "
            f"{cell.simulated[tenth]:.0f} | {100 * cell.area:.1f} % | {reached} | {forecast} |"
        )
    return "\n".join(out)


# -- the figure -----------------------------------------------------------------------------------

WIDTH, HEIGHT = 1080, 460
LEFT, TOP, PANEL_WIDTH, PANEL_HEIGHT, GAP = 66, 92, 460, 300, 82
INK, GREY = "#1a1a1a", "#555"


def text(out, x, y, size, anchor, fill, words):
    out.append(
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}" '
        f'fill="{fill}">{words}</text>'
    )


def ticks(most, about):
    """Round numbers up to `most`."""
    step = next(s for s in (1, 2, 5, 10, 100, 200, 500, 1000, 2000, 5000) if most / s <= about)
    return [k * step for k in range(int(most / step) + 1)]


def draw(cells, options):
    """The picture as SVG: a panel per path."""
    title = "The window after one early loss: unmodified iperf3, tuned and untuned"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="Ubuntu, sans-serif" fill="{INK}">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    text(out, LEFT, 30, 20, "start", INK, title)
    x = LEFT
    for law in LAWS:
        out.append(f'<path d="M{x} 53h28" stroke="{law.colour}" stroke-width="2.2"/>')
        text(out, x + 34, 58, 14, "start", INK, law.heading)
        x += 60 + int(7.3 * len(law.heading))
    out.append(f'<path d="M{x} 53h28" stroke="{INK}" stroke-width="1.2" stroke-dasharray="5 4"/>')
    text(out, x + 34, 58, 14, "start", INK, "the simulator's prediction")
    for column, rtt_ms in enumerate(RTTS_MS):
        mine = [cell for cell in cells if cell.rtt_ms == rtt_ms]
        panel(out, LEFT + column * (PANEL_WIDTH + GAP), rtt_ms, mine, options)
    out.append("</svg>")
    return "\n".join(out) + "\n"


def panel(out, left, rtt_ms, cells, options):
    bottom, most = TOP + PANEL_HEIGHT, 1.1 * bdp(rtt_ms)
    end = max(cell.end for cell in cells)
    y = lambda w: bottom - PANEL_HEIGHT * min(w / most, 1)
    x = lambda t: left + PANEL_WIDTH * t / end
    for tick in ticks(most, 6):
        out.append(f'<path d="M{left} {y(tick):.1f}h{PANEL_WIDTH}" stroke="#ddd"/>')
        text(out, left - 8, y(tick) + 4, 12, "end", GREY, f"{tick:,}")
    for tick in ticks(end, 6):
        out.append(f'<path d="M{x(tick):.1f} {bottom}v5" stroke="{INK}"/>')
        text(out, x(tick), bottom + 19, 12, "middle", GREY, tick)
    full = y(bdp(rtt_ms))
    out.append(f'<path d="M{left} {full:.1f}h{PANEL_WIDTH}" stroke="{GREY}" stroke-dasharray="2 3"/>')
    text(out, left + 6, full - 5, 12, "start", GREY, "full rate")
    out.append(f'<path d="M{left} {TOP}v{PANEL_HEIGHT}h{PANEL_WIDTH}" fill="none" stroke="{INK}"/>')
    heading = f"{RATE_MBIT} Mbit/s, {rtt_ms} ms: window, segments"
    text(out, left, TOP - 10, 13, "start", INK, heading)
    text(out, left + PANEL_WIDTH / 2, bottom + 42, 13, "middle", INK, "seconds after the loss")
    every = max(1, int(0.2 / STEP))
    for cell in cells:
        lines = [(cell.kernel, f'stroke="{cell.law.colour}" stroke-width="2.2"')]
        lines.append((cell.simulated, f'stroke="{INK}" stroke-width="1.2" stroke-dasharray="5 4"'))
        for curve, style in lines:
            points = [(x(i * STEP), y(w)) for i, w in enumerate(curve) if i % every == 0]
            d = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
            out.append(f'<polyline points="{d}" fill="none" {style}/>')


def main():
    if sys.argv[1:2] == ["--near"]:
        near(json.loads(sys.argv[2]))
        return
    if sys.argv[1:2] == ["--far"]:
        HTTPServer(("", CURL_PORT), Sink).serve_forever()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).resolve().parent.parent / "docs/img/net100.svg"
    parser.add_argument("--fullpipe", required=True, help="the program, with the tuner")
    parser.add_argument("--out", type=Path, required=True, help="folder that keeps the runs")
    parser.add_argument("--seconds", type=int, default=20, help="of iperf3 (default: 20)")
    parser.add_argument("--repeat", type=int, default=3, help="medians of so many (default: 3)")
    parser.add_argument("--by", default="", metavar="WORDS",
                        help="before each measuring command, as `flock FILE` or `chrt -f 1`")
    parser.add_argument("--figure", type=Path, default=default, help=f"(default: {default.name})")
    options = parser.parse_args()
    lacks = [tool for tool in ("iperf3", "curl", "ip") if not shutil.which(tool)]
    if os.geteuid() != 0 or lacks:
        raise SystemExit(f"needs root and iperf3, curl, ip(8); lacking: {', '.join(lacks) or 'root'}")
    options.fullpipe = shutil.which(options.fullpipe) or str(Path(options.fullpipe).resolve())
    options.out = options.out.resolve()
    cells = [Cell(options, law, rtt_ms) for rtt_ms in RTTS_MS for law in LAWS]
    options.figure.write_text(draw(cells, options), encoding="utf-8")
    flagged, runs = sum(c.flagged for c in cells), sum(c.runs for c in cells)
    print(table(cells, options))
    print(f"\nmedians of {options.repeat}; the emulator flagged {flagged} of {runs} runs")
    for cell in cells:
        low, high = cell.mbps_all[0], cell.mbps_all[-1]
        print(f"{cell.rtt_ms} ms, {cell.law.heading}: {low:.1f} to {high:.1f} Mbit/s",
              file=sys.stderr)


if __name__ == "__main__":
    main()
