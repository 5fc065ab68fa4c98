#!/usr/bin/env python3
"""Goodput and CPU time of one stream over loopback: fullpipe beside kernel TCP, UDT and quinn, in one run.

Every candidate sends for the same time, one after the other, and the whole round is repeated; the median counts. A candidate that
cannot run here is named with the reason. Segments of 1448 bytes (encrypted 1424; UDT and quinn: packets of 1500 bytes on the wire), an ACK for
every second packet (fullpipe). Loopback has an MTU of 64 KiB, of which kernel TCP makes use.

Only the standard library is needed. Exit status 0, also if a bar is missed; with --check, 1 then.
"""

import argparse
import dataclasses
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# Gbit/s that fullpipe is to reach on two cores, and what would be better still.
BARS = {"fullpipe packet": (4.0, 5.4), "fullpipe bulk": (10.0, 13.6)}
# Error of a gap at the receiving side, microseconds, 99th percentile.
SPACING_BAR = 100


@dataclasses.dataclass
class Sample:
    """One transfer."""

    bytes: int
    seconds: float
    sender_cpu_s: float
    receiver_cpu_s: float
    note: str = ""

    @property
    def gbps(self) -> float:
        return 8e-9 * self.bytes / self.seconds

    def per_gb(self, cpu: float) -> float:
        return cpu / (1e-9 * self.bytes) if self.bytes else float("nan")


class Skip(Exception):
    """Why a candidate cannot run, and what would help."""


class Program:
    """A program that makes a whole transfer, both ends, and prints a `Sample` as JSON."""

    def __init__(self, name, build):
        self.name, self.build = name, build
        self.command = None

    def prepare(self, scratch):
        self.command = self.build(scratch)

    def run(self, prefix, seconds) -> Sample:
        command = [*prefix, *(word.format(seconds=seconds) for word in self.command)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
        if done.returncode != 0:
            raise RuntimeError(f"{self.name}: {done.stderr.strip() or done.returncode}")
        line = json.loads(done.stdout.strip().splitlines()[-1])
        known = {field.name for field in dataclasses.fields(Sample)}
        sample = Sample(**{key: value for key, value in line.items() if key in known})
        if "socket_drops" in line:
            lost = sum(line["socket_drops"])
            sample.note = f"window {line['window']:g}, {lost} lost at sockets, {line['retransmits']} sent again"
        return sample


class Iperf:
    """Kernel TCP."""

    name = "kernel TCP (iperf3)"

    def prepare(self, _scratch):
        if not shutil.which("iperf3"):
            raise Skip("iperf3 is missing (apt-get install iperf3)")

    def run(self, prefix, seconds) -> Sample:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        server = subprocess.Popen(
            [*prefix, "iperf3", "-s", "-1", "-B", "127.0.0.1", "-p", port],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            await_listener(int(port))
            command = [*prefix, "iperf3", "-c", "127.0.0.1", "-p", port, "-t", str(seconds), "-C", "cubic", "-J"]
            client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            text = client.stdout.read()
            _, status, sender = os.wait4(client.pid, 0)
            client.returncode = os.waitstatus_to_exitcode(status)
            if client.returncode != 0:
                raise RuntimeError(f"iperf3: {json.loads(text).get('error', status)}")
            _, status, receiver = os.wait4(server.pid, 0)
            server.returncode = os.waitstatus_to_exitcode(status)
        finally:
            if server.returncode is None:
                server.kill()
                server.wait()
        end = json.loads(text)["end"]["sum_received"]
        return Sample(end["bytes"], end["seconds"], cpu(sender), cpu(receiver))


def await_listener(port):
    """Until somebody listens on this TCP port; asking by connecting would be its one test."""
    wanted = f":{port:04X} "
    for _ in range(200):
        rows = Path("/proc/net/tcp").read_text().splitlines()
        if any(wanted in row.split("00000000:0000")[0] and " 0A " in row for row in rows):
            return
        time.sleep(0.01)
    raise RuntimeError("iperf3 does not listen")


def cpu(usage) -> float:
    return usage.ru_utime + usage.ru_stime


def quietly(command, hint):
    """Runs it; if it fails, the candidate is skipped with the last thing that it said, and what may help."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise Skip(f"{command[0]} is missing") from None
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise Skip(f"{command[0]}: {said} ({hint})")


def fullpipe(mode):
    def build(_scratch):
        return [str(TARGET / "release/examples/memory"), f"mode={mode}", "seconds={seconds}"]

    return build


def session(mode, encrypted):
    """Through `serve`: handshake, control channel, and what flows carry sealed or in clear."""

    def build(_scratch):
        return [str(TARGET / "release/examples/sealed"), f"mode={mode}", f"encrypted={encrypted}", "seconds={seconds}"]

    return build


def udt(scratch):
    if not shutil.which("g++"):
        raise Skip("g++ is missing (apt-get install g++)")
    if not Path("/usr/include/udt/udt.h").exists():
        raise Skip("UDT is missing (apt-get install libudt-dev)")
    program = Path(scratch) / "udt"
    quietly(["g++", "-O2", "-o", program, HERE / "udt.cpp", "-ludt", "-lpthread"], "apt-get install libudt-dev")
    return [str(program), "{seconds}"]


def quinn(_scratch):
    target = Path(os.environ.get("CARGO_TARGET_DIR", HERE / "quinn/target"))
    cargo = os.environ.get("CARGO", "cargo")
    command = [cargo, "build", "--release", "--locked", "--quiet", "--manifest-path", HERE / "quinn/Cargo.toml"]
    quietly(command, "its crates come from the registry: once with a network")
    return [str(target / "release/bench-quinn"), "{seconds}"]


def machine() -> str:
    model = next(
        (line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}"


def load() -> str:
    return " ".join(f"{x:.1f}" for x in os.getloadavg())


def spread(values, digits=2) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def table(rows) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for n, row in enumerate(rows):
        cells = [cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))]
        lines.append("| " + " | ".join(cells) + " |")
        if n == 0:
            lines.append("| " + " | ".join("-" * w if i == 0 else "-" * (w - 1) + ":" for i, w in enumerate(widths)) + " |")
    return "\n".join(lines)


def transfers(args, prefix, scratch):
    """Samples by name, and reasons of those that are skipped."""
    candidates = [
        Program("fullpipe packet", fullpipe("packet")),
        Program("fullpipe bulk", fullpipe("bulk")),
        Program("fullpipe serve packet", session("packet", "false")),
        Program("fullpipe serve packet encrypted", session("packet", "true")),
        Program("fullpipe serve bulk", session("bulk", "false")),
        Program("fullpipe serve bulk encrypted", session("bulk", "true")),
        Program("UDT 4.11", udt),
        Program("quinn 0.11", quinn),
        Iperf(),
    ]
    if args.only:
        candidates = [c for c in candidates if any(word in c.name for word in args.only.split(","))]
    skipped, samples = {}, {}
    for candidate in list(candidates):
        try:
            candidate.prepare(scratch)
        except Skip as reason:
            skipped[candidate.name] = str(reason)
            candidates.remove(candidate)
    for round_number in range(args.repeat):
        for candidate in candidates:
            sample = candidate.run(prefix, args.seconds)
            samples.setdefault(candidate.name, []).append(sample)
            print(
                f"round {round_number + 1}: {candidate.name:32} {sample.gbps:6.2f} Gbit/s"
                f"   cpu-s/GB {sample.per_gb(sample.sender_cpu_s):.2f} + {sample.per_gb(sample.receiver_cpu_s):.2f}"
                f"   {sample.note}   load {load()}",
                file=sys.stderr,
            )
    return samples, skipped


def spacing(args, prefix):
    """Errors of 4 ms gaps of an initial window, in microseconds, by how the sender's host waits."""
    program = TARGET / "release/examples/spacing"
    rows = []
    for patience in ("sleep", "spin"):
        command = [*prefix, str(program), patience]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        rows.append((patience, json.loads(done.stdout)))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5, help="rounds (default 5)")
    parser.add_argument("--seconds", type=int, default=3, help="of each transfer (default 3; UDT needs two to get going)")
    parser.add_argument("--only", help="names of candidates, separated by commas; parts of names do")
    parser.add_argument("--cpus", help="processors to use, as taskset takes them (default: the first two)")
    parser.add_argument("--realtime", action="store_true", help="real-time priority (needs privilege): as if nothing else ran")
    parser.add_argument("--check", action="store_true", help="exit status 1 if a bar is missed")
    parser.add_argument("--results", type=Path, default=HERE.parent / "udp-results.md", help="file to write")
    args = parser.parse_args()

    cargo = os.environ.get("CARGO", "cargo")
    subprocess.run(
        [cargo, "build", "--release", "--locked", "--quiet", "-p", "fullpipe-net", "--example", "memory", "--example", "sealed", "--example", "spacing"], cwd=ROOT, check=True
    )
    cpus = args.cpus or ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))
    prefix = ["taskset", "-c", cpus] if shutil.which("taskset") else []
    if args.realtime:
        prefix += ["chrt", "--rr", "1"]
        if not shutil.which("chrt"):
            sys.exit("bench-udp: chrt is missing (apt-get install util-linux)")
        if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
            sys.exit("bench-udp: real-time priority was refused; run it as root or without --realtime")

    before = load()
    with tempfile.TemporaryDirectory() as scratch:
        samples, skipped = transfers(args, prefix, scratch)
    gaps = spacing(args, prefix)

    rivals = [name for name in samples if not name.startswith("fullpipe")]
    rows = [["one stream over loopback", "Gbit/s", "sender cpu-s/GB", "receiver cpu-s/GB", *(f"x {name}" for name in rivals)]]
    for name, runs in samples.items():
        ratios = [
            f"{statistics.median(a.gbps / b.gbps for a, b in zip(runs, samples[rival])):.2f}" for rival in rivals
        ]
        rows.append(
            [
                name,
                spread([s.gbps for s in runs]),
                spread([s.per_gb(s.sender_cpu_s) for s in runs]),
                spread([s.per_gb(s.receiver_cpu_s) for s in runs]),
                *ratios,
            ]
        )
    gap_rows = [["gaps of 4 ms, error in us", "gaps", "p50", "p99", "largest"]]
    for patience, gap in gaps:
        gap_rows.append([patience, str(gap["gaps"]), f"{gap['p50_us']:.1f}", f"{gap['p99_us']:.1f}", f"{gap['max_us']:.1f}"])

    missed = []
    verdicts = []
    for name, (bar, stretch) in BARS.items():
        if name in samples:
            reached = statistics.median(s.gbps for s in samples[name])
            verdict = "reached" if reached >= bar else "missed"
            missed += [name] if reached < bar else []
            verdicts.append(f"- {name}: {reached:.2f} Gbit/s, bar {bar:g} {verdict}; {stretch:g} would be better still.")
    for patience, gap in gaps:
        good = gap["p99_us"] <= SPACING_BAR
        missed += [] if good else [f"spacing {patience}"]
        verdicts.append(
            f"- gaps, {patience}: p99 {gap['p99_us']:.1f} us, bar {SPACING_BAR} {'reached' if good else 'missed'}."
        )
    # Even then the kernel keeps a part for others (/proc/sys/kernel/sched_rt_runtime_us, the fair
    # server).
    how = "real-time priority (up to 95 % of a processor)" if args.realtime else "normal priority"
    page = "\n".join(
        [
            "# Measured throughput over UDP",
            "",
            f"One run of `bench/udp/run.py {' '.join(sys.argv[1:])}`".rstrip() + f" on {time.strftime('%Y-%m-%d')}: {machine()};",
            f"processors {cpus}, {how}, load {before} before and {load()} after. {args.repeat} rounds of {args.seconds} s each;",
            "median (least-most). Ratios are medians of the rounds. One thread per end of fullpipe and quinn; quinn encrypts.",
            "",
            table(rows),
            "",
            *(f"Skipped: {name}: {reason}." for name, reason in skipped.items()),
            *([""] if skipped else []),
            "An initial window with gaps of 4 ms, as the receiving side's kernel saw it arrive:",
            "",
            table(gap_rows),
            "",
            *verdicts,
            "",
        ]
    )
    args.results.write_text(page)
    print(page)
    if missed:
        print(f"missed: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed and args.check else 0


if __name__ == "__main__":
    sys.exit(main())
