#!/usr/bin/env python3
"""Run the same dumbbells on ns-2, ns-3 and fullpipe, one process at a time, and compare their speed.

Speed is packets that left the bottleneck per CPU second (user + system) of the simulator process. A
process that exceeds the wall-clock limit is killed; what it had reported by then counts, divided by the
CPU time it had used at that report. Only the standard library is needed. See README.md beside this file.
"""

import argparse
import dataclasses
import json
import math
import os
import re
import resource
import selectors
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKET_BITS = 1500 * 8
SIMULATORS = ("ns-2", "ns-3")


@dataclasses.dataclass(frozen=True)
class Case:
    """One dumbbell. Everything the simulators are told about sizes is computed here, once."""

    name: str
    flows: int
    rate: float  # bottleneck, bit/s
    rtt_lo: float  # s
    rtt_hi: float  # s; host pairs are spread evenly over [rtt_lo, rtt_hi]
    buffer_bdp: float  # bottleneck buffer, in BDP
    buffer_rtt: float  # s, the RTT that this BDP is taken at
    duration: float  # simulated s
    hosts: int  # host pairs that share the flows
    loss: float = 0.0  # per packet
    windowed: bool = False  # the window is at most the BDP: the queue stays short, nothing is lost

    @property
    def bdp(self) -> int:
        """Packets."""
        return math.ceil(self.rate * self.buffer_rtt / PACKET_BITS)

    @property
    def buffer(self) -> int:
        """Packets."""
        return max(1, round(self.buffer_bdp * self.bdp))

    @property
    def window(self) -> int:
        """Packets. Out of the way of congestion control (16 fair shares), yet bounded: ns-3 fills its
        send buffer with packets at once."""
        if self.windowed:
            return self.bdp
        pipe = self.bdp + self.buffer
        return min(2 * pipe, max(16 * pipe // self.flows, 1000))

    @property
    def step(self) -> float:
        """Simulated seconds between reports: the time of 5000 packets at full rate, so that little is
        forgotten when a slow simulator is stopped."""
        return min(0.5, 5000 * PACKET_BITS / self.rate)

    def options(self) -> dict[str, str]:
        """The options of ns2/dumbbell.tcl and ns3/dumbbell.cc."""
        return {
            "flows": str(self.flows),
            "hosts": str(self.hosts),
            "rate": f"{self.rate:.0f}",
            "access": f"{10 * self.rate:.0f}",
            "rtt_lo": f"{self.rtt_lo:g}",
            "rtt_hi": f"{self.rtt_hi:g}",
            "buffer": str(self.buffer),
            "window": str(self.window),
            "loss": f"{self.loss:.9f}",
            "duration": f"{self.duration:g}",
            "step": f"{self.step:.9f}",
        }


def case(name, flows, rate, rtt, buffer_bdp, duration, hosts, **more) -> Case:
    return Case(name, flows, rate, rtt, rtt, buffer_bdp, rtt, duration, hosts, **more)


CASES = [
    case("a", 1, 622e6, 0.080, 0.5, 60, 1),
    case("b", 8, 1e9, 0.100, 1.0, 30, 8),
    case("c", 100, 1e9, 0.050, 1.0, 30, 20),
    case("d", 1000, 10e9, 0.050, 1.0, 10, 40),
    Case("d2", 1000, 10e9, 0.020, 0.080, 1.0, 0.050, 10, 40),
    case("e", 1, 10e9, 0.100, 1.0, 30, 1, windowed=True),
    case("e2", 1, 10e9, 0.100, 1.0, 30, 1, windowed=True, loss=1e-5),
    case("e3", 1, 10e9, 0.100, 0.5, 30, 1),  # start-up loses a large part of a window
    case("f", 1, 100e9, 0.100, 1.0, 5, 1, windowed=True),
]
# Small enough for an instruction-counting run of every simulator.
SMALL = case("small", 1, 100e6, 0.020, 0.5, 10, 1)


@dataclasses.dataclass
class Result:
    """One line of the table."""

    simulator: str
    case: str
    delivered_packets: int
    cpu_s: float
    simulated_s: float | None = None
    peak_rss_mb: float | None = None
    instructions_per_packet: float | None = None
    finished: bool = True

    @property
    def packets_per_cpu_s(self) -> float | None:
        return self.delivered_packets / self.cpu_s if self.cpu_s > 0 else None

    def as_json(self) -> str:
        return json.dumps(dataclasses.asdict(self) | {"packets_per_cpu_s": self.packets_per_cpu_s})


def cpu_seconds(pid: int) -> float:
    """User + system time of a running process, with the resolution of the scheduler tick."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_limited(command: list[str], limit: float, core: int | None):
    """Run `command` for at most `limit` seconds of wall time, on one core if `core` is given.

    Returns the stdout lines, each with the CPU seconds used when it was read, the resource usage of the
    process, and whether it ended on its own. Raises `RuntimeError` when it ended with a failure.
    """

    def on_one_core():
        if core is not None:
            os.sched_setaffinity(0, {core})

    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, preexec_fn=on_one_core
        )
        deadline = time.monotonic() + limit
        lines, rest, finished = [], b"", True
        selector = selectors.DefaultSelector()
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if finished and left <= 0:
                # Not reaped yet, so the id still belongs to this child.
                child.kill()
                finished = False
            if not selector.select(timeout=max(left, 0) if finished else None):
                continue
            chunk = os.read(child.stdout.fileno(), 65536)
            if not chunk:
                break
            cpu = cpu_seconds(child.pid)
            rest += chunk
            *complete, rest = rest.split(b"\n")
            lines += [(line.decode(), cpu) for line in complete]
        selector.close()
        child.stdout.close()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if finished and child.returncode != 0:
            errors.seek(0)
            tail = errors.read().decode(errors="replace")[-2000:]
            raise RuntimeError(f"`{shlex.join(command)}` failed with {child.returncode}\n{tail}")
    return lines, usage, finished


def run_case(simulator: str, program: list[str], case: Case, arguments) -> Result:
    """One simulator, one case: the fastest of the repetitions. Other load only ever slows a run down."""
    runs = [run_once(simulator, program, case, arguments) for _ in range(max(1, arguments.repeat))]
    return max(runs, key=lambda r: r.packets_per_cpu_s or 0)


def run_once(simulator: str, program: list[str], case: Case, arguments) -> Result:
    command = program + simulator_options(simulator, case)
    lines, usage, finished = run_limited(command, arguments.limit, arguments.core)
    simulated, packets, cpu = 0.0, 0, 0.0
    for line, cpu_then in lines:
        if match := re.fullmatch(r"progress (\S+) (\d+)", line):
            simulated, packets, cpu = float(match[1]), int(match[2]), cpu_then
    if finished:
        cpu = usage.ru_utime + usage.ru_stime
    # Linux: the peak of the process, in KiB.
    return Result(simulator, case.name, packets, cpu, simulated, usage.ru_maxrss / 1024, None, finished)


def simulator_options(simulator: str, case: Case) -> list[str]:
    options = case.options()
    if simulator == "ns-3":
        return [f"--{key}={value}" for key, value in options.items()]
    return [word for pair in options.items() for word in pair]


def count_instructions(simulator: str, program: list[str], arguments) -> Result:
    """Instructions per delivered packet of the small case, start-up of the simulator taken out.

    Two runs, of half and of the whole duration: the difference in instructions over that in packets.
    """
    totals = []
    for duration in (SMALL.duration / 2, SMALL.duration):
        part = dataclasses.replace(SMALL, duration=duration)
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / "out"
            command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
            command += program + simulator_options(simulator, part)
            lines, usage, finished = run_limited(command, arguments.callgrind_limit, arguments.core)
            if not finished:
                raise RuntimeError(f"{simulator}: the counting run took over {arguments.callgrind_limit:g} s")
            summary = re.search(r"^(?:summary|totals): (\d+)", out.read_text(errors="replace"), re.M)
            totals.append((int(summary[1]), int(lines[-1][0].split()[2])))
    (few_instructions, few_packets), (instructions, packets) = totals
    per_packet = (instructions - few_instructions) / (packets - few_packets)
    result = run_case(simulator, program, SMALL, arguments)
    result.instructions_per_packet = per_packet
    return result


def read_recorded(path: Path) -> list[Result]:
    """What `--json` wrote earlier."""
    fields = {f.name for f in dataclasses.fields(Result)}
    rows = [json.loads(line) for line in path.read_text().splitlines() if line]
    return [Result(**{key: value for key, value in row.items() if key in fields}) for row in rows]


def build_ns3(build: Path) -> list[str]:
    """Compile ns3/dumbbell.cc into `build` when it is missing or old."""
    source, binary = HERE / "ns3" / "dumbbell.cc", build / "ns3-dumbbell"
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        build.mkdir(parents=True, exist_ok=True)
        modules = ("applications", "point-to-point", "internet", "traffic-control", "network", "core")
        libraries = [f"-lns3-{module}" for module in modules]
        subprocess.run(["g++", "-O2", "-Wall", "-o", str(binary), str(source), *libraries], check=True)
    return [str(binary)]


def run_fullpipe(template: str, cases: list[Case], arguments) -> list[Result]:
    """Run the command, with {cases} and {limit} filled in, and read its JSON lines."""
    text = template.replace("{cases}", ",".join(c.name for c in cases))
    command = shlex.split(text.replace("{limit}", f"{arguments.limit:g}"))
    lines, _, finished = run_limited(command, arguments.limit * (len(cases) + 1), arguments.core)
    if not finished:
        print("run.py: the fullpipe command was stopped at its time limit", file=sys.stderr)
    wanted = {c.name for c in cases}
    results = []
    for line, _ in lines:
        if not line.startswith("{"):
            continue
        row = json.loads(line)
        if row["case"] not in wanted:
            continue
        results.append(
            Result(
                "fullpipe",
                row["case"],
                int(row["delivered_packets"]),
                float(row["cpu_s"]),
                row.get("simulated_s"),
                row.get("peak_rss_mb"),
                row.get("instructions_per_packet"),
                row.get("finished", True),
            )
        )
    return results


def cell(value, form: str) -> str:
    return "-" if value is None else format(value, form)


def table(results: list[Result], cases: list[Case]) -> str:
    """One Markdown table: all simulators of a case below each other, speed relative to the fastest peer."""
    head = ["case", "simulator", "delivered packets", "simulated s", "CPU s", "packets per CPU s"]
    head += ["x fastest peer", "peak RSS MB", "instructions per packet"]
    rows = []
    for c in cases:
        of_case = [r for r in results if r.case == c.name]
        peers = [r.packets_per_cpu_s or 0 for r in of_case if r.simulator in SIMULATORS]
        best = max(peers, default=0)
        for r in of_case:
            speed = r.packets_per_cpu_s
            ratio = speed / best if best and speed is not None else None
            simulated = cell(r.simulated_s, ".3g")
            if not r.finished:
                simulated += f" of {c.duration:g}"
            row = [c.name, r.simulator, cell(r.delivered_packets, ",d"), simulated, cell(r.cpu_s, ".2f")]
            row += [cell(speed, ",.0f"), cell(ratio, ".3g"), cell(r.peak_rss_mb, ",.0f")]
            rows.append(row + [cell(r.instructions_per_packet, ",.0f")])
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(row):
        padded = [row[0].ljust(widths[0]), row[1].ljust(widths[1])]
        padded += [text.rjust(width) for text, width in zip(row[2:], widths[2:])]
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * w for w in widths[:2]] + ["-" * (w - 1) + ":" for w in widths[2:]]
    return "\n".join([line(head), line(rule), *map(line, rows)])


def sizes(cases: list[Case]) -> str:
    """What the simulators are told, as a Markdown table."""
    lines = ["| case | flows | host pairs | rate Gbit/s | RTT ms | BDP | buffer | window limit | loss | s |"]
    lines.append("|------|------:|-----------:|------------:|-------:|----:|-------:|-------------:|-----:|--:|")
    for c in cases:
        rtt = f"{1e3 * c.rtt_lo:g}" if c.rtt_lo == c.rtt_hi else f"{1e3 * c.rtt_lo:g}-{1e3 * c.rtt_hi:g}"
        lines.append(
            f"| {c.name} | {c.flows} | {c.hosts} | {c.rate / 1e9:g} | {rtt} | {c.bdp} | {c.buffer} "
            f"| {c.window} | {c.loss:g} | {c.duration:g} |"
        )
    return "\n".join(lines)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--cases", default=",".join(c.name for c in CASES), help="comma-separated names")
    parser.add_argument("--simulators", default=",".join(SIMULATORS), help="peers to run; empty for none")
    parser.add_argument("--limit", type=float, default=60, help="wall seconds per process (default: 60)")
    parser.add_argument("--repeat", type=int, default=1, help="keep the fastest of so many runs of a case")
    parser.add_argument("--core", type=int, help="bind every process to this core")
    parser.add_argument("--callgrind", action="store_true", help="count instructions on the small case")
    parser.add_argument("--callgrind-limit", type=float, default=600, help="wall seconds per counting run")
    parser.add_argument("--recorded", type=Path, metavar="FILE", help="take results from JSON lines in FILE")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also append JSON lines to FILE")
    parser.add_argument(
        "--fullpipe",
        metavar="CMD",
        help="command that prints one JSON object per case: case, delivered_packets, cpu_s, peak_rss_mb, "
        "instructions_per_packet (or null), and optionally simulated_s, finished; {cases} and {limit} "
        "are filled in; no shell is involved",
    )
    parser.add_argument("--sizes", action="store_true", help="print what the cases are, and stop")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    known = {c.name: c for c in [*CASES, SMALL]}
    names = [name for name in arguments.cases.split(",") if name]
    if unknown := [name for name in names if name not in known]:
        print(f"run.py: no such case: {', '.join(unknown)} (known: {', '.join(known)})", file=sys.stderr)
        return 2
    cases = [known[name] for name in names]
    if arguments.sizes:
        print(sizes(cases))
        return 0

    default_build = HERE.parents[1] / "target" / "peers"
    build = Path(os.environ.get("FULLPIPE_BENCH_BUILD", default_build))
    programs = {}
    for simulator in [name for name in arguments.simulators.split(",") if name]:
        if simulator == "ns-2" and shutil.which("ns"):
            programs[simulator] = ["ns", str(HERE / "ns2" / "dumbbell.tcl")]
        elif simulator == "ns-3":
            programs[simulator] = build_ns3(build)
        else:
            print(f"run.py: simulator not available: {simulator}", file=sys.stderr)
            return 2

    results = []

    def keep(result: Result):
        results.append(result)
        speed = cell(result.packets_per_cpu_s, ",.0f")
        print(f"{result.case} {result.simulator}: {speed} packets per CPU second", file=sys.stderr)
        if arguments.json:
            with arguments.json.open("a") as out:
                print(result.as_json(), file=out)

    # A peer that eats all memory should fail alone.
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (int(0.8 * total) if hard == resource.RLIM_INFINITY else hard, hard))

    if arguments.recorded:
        results += read_recorded(arguments.recorded)

    failed = False
    for simulator, program in programs.items():
        for c in cases:
            if arguments.callgrind and c == SMALL:
                continue  # the counting below also times it
            try:
                keep(run_case(simulator, program, c, arguments))
            except RuntimeError as error:
                print(f"run.py: {simulator}, case {c.name}: {error}", file=sys.stderr)
                failed = True
        if arguments.callgrind:
            try:
                keep(count_instructions(simulator, program, arguments))
            except RuntimeError as error:
                print(f"run.py: {simulator}, instruction count: {error}", file=sys.stderr)
                failed = True
    if arguments.callgrind and SMALL not in cases:
        cases.append(SMALL)
    if arguments.fullpipe:
        try:
            for result in run_fullpipe(arguments.fullpipe, cases, arguments):
                keep(result)
        except (RuntimeError, OSError, ValueError, KeyError) as error:
            print(f"run.py: fullpipe: {type(error).__name__}: {error}", file=sys.stderr)
            failed = True
    print(table(results, cases))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
