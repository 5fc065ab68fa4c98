#!/usr/bin/env python3
"""Two tuners measure the path between them, which is emulated, and go by what they found.

usage: two_tuners.py PROGRAM

Each answers the probes of the other (`tune run --answer-probes`). The path has a known rate, round
trip and buffer: what is found must be that, be kept with its age for the next daemon, and be the
window of flows whose policy says `bdp`. Both hosts are namespaces of this script's own, and flows
of no others are touched. Needs root and a program with the tuner; says "skipped" without. A minute.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

RATE, RTT, BUFFER = 50e6, 0.040, 100 * 1500
PATH = ["--rate", "50Mbit/s", "--rtt", "40ms", "--buffer", "100 packets"]
PORT = 5001
# Names of algorithms are the whole machine's: nobody else's tuner, if one runs, has these.
PREFIX = {"near": "fp2n_", "far": "fp2f_"}
POLICY = """
[[path]]
name = "between"
to = ["{other}/32"]
stack = "aimd(increase=4,decrease=0.125)"
"""
# What the file does not state, the daemon measures.
PROBE = """
[[path]]
name = "between"
to = ["{other}/32"]
stack = "aimd(increase=4,decrease=0.125)"
window = "bdp"
probe = "{other}"
"""


class Tuner:
    """A daemon of this host."""

    def __init__(self, program: str, top: Path, host: str) -> None:
        line = [program, "tune", "run", top / f"{host}.toml", "--state", top / host, "--prefix",
                PREFIX[host], "--own-namespace", "--no-cgroup", "--answer-probes", "0.0.0.0"]
        # Which servers it has met is the host's own, too.
        own = {**os.environ, "XDG_STATE_HOME": str(top / f"{host}.home")}
        with open(top / f"{host}.log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(line, stdout=log, stderr=log, env=own)

    def end(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=30)


def ask(program: str, state: Path, verb: str) -> dict:
    line = [program, "tune", verb, "--state", state, "--json"]
    said = subprocess.run(line, capture_output=True, text=True)
    return json.loads(said.stdout) if said.returncode == 0 else {}


def until(what: str, seconds: float, found):
    """The first answer that is one."""
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        if answer := found():
            return answer
        time.sleep(0.2)
    raise SystemExit(f"two_tuners.py: {what}: not within {seconds:.0f} s")


def measured(program: str, state: Path) -> dict | None:
    """What the daemon knows of the path."""
    paths = ask(program, state, "status").get("measured") or [{}]
    return paths[0] if paths[0].get("age_s") is not None else None


def holds(what: str, is_so: bool, seen) -> None:
    print(f"{'ok' if is_so else 'NOT SO'}: {what}: {seen}")
    if not is_so:
        raise SystemExit(1)


def is_the_path(who: str, m: dict) -> None:
    rate, rtt, buffer = m["rate_bps"], m["rtt_ns"] / 1e9, m["buffer_bytes"]
    holds(f"{who}: rate, Mbit/s", abs(rate / RATE - 1) < 0.05, rate / 1e6)
    holds(f"{who}: round trip, ms", abs(rtt - RTT) < 0.002, rtt * 1e3)
    holds(f"{who}: buffer, kB", abs(buffer / BUFFER - 1) < 0.15, buffer / 1e3)
    holds(f"{who}: it was full", m["lost"], m["lost"])


def drain() -> None:
    """Takes what flows to the far host carry."""
    with socket.create_server(("", PORT)) as listener:
        while True:
            connection, _ = listener.accept()
            while connection.recv(1 << 20):
                pass


def bulk(host: str, stop: threading.Event) -> None:
    with socket.create_connection((host, PORT)) as connection:
        while not stop.is_set():
            connection.sendall(bytes(1 << 16))


def far(program: str, top: Path) -> None:
    (top / "far.toml").write_text(POLICY.format(other=os.environ["FULLPIPE_NEAR"]))
    tuner = Tuner(program, top, "far")
    threading.Thread(target=drain, daemon=True).start()
    tuner.process.wait()


def window(program: str, top: Path) -> None:
    """A flow's window grows to what the path holds, and no further."""
    stop = threading.Event()
    sender = threading.Thread(target=bulk, args=(os.environ["FULLPIPE_FAR"], stop), daemon=True)
    sender.start()
    windows = []
    begin = time.monotonic()
    while time.monotonic() - begin < 8:
        flows = ask(program, top / "near", "flows").get("flows", [])
        windows += [f["cwnd_segments"] for f in flows if f["path"] == "between"]
        time.sleep(0.2)
    stop.set()
    sender.join()
    bdp = RATE / 8 * RTT / 1500
    most = max(windows, default=0)
    holds(f"the largest window, of a path of {bdp:.0f} segments", abs(most / bdp - 1) < 0.08, most)


def near(program: str, top: Path) -> None:
    other = os.environ["FULLPIPE_FAR"]
    until("the far daemon", 20, lambda: ask(program, top / "far", "status"))
    (top / "near.toml").write_text(PROBE.format(other=other))
    tuner = Tuner(program, top, "near")
    try:
        is_the_path("near", until("near's measurement", 30,
                                  lambda: measured(program, top / "near")))
        # One after the other: two probes at a time would each have a part of the path.
        (top / "far.toml").write_text(PROBE.format(other=os.environ["FULLPIPE_NEAR"]))
        apply = [program, "tune", "apply", "--state", top / "far"]
        subprocess.run(apply, check=True, capture_output=True)
        is_the_path("far", until("far's measurement", 30,
                                 lambda: measured(program, top / "far")))
        window(program, top)
        first = measured(program, top / "near")
        tuner.end()
        time.sleep(1.5)
        tuner = Tuner(program, top, "near")
        until("the next daemon", 20, lambda: ask(program, top / "near", "status"))
        status = ask(program, top / "near", "status")
        rules = [rule["name"] for rule in status["rules"]]
        holds("the next daemon has its rule at once", rules == ["between"], rules)
        m = measured(program, top / "near")
        is_same = all(m[key] == first[key] for key in ("rate_bps", "rtt_ns", "buffer_bytes"))
        holds("what was measured is kept", is_same and m["at"] == first["at"], m)
        holds("and is older, s", m["age_s"] > first["age_s"], (first["age_s"], m["age_s"]))
    finally:
        tuner.end()
        for log in ("near.log", "far.log"):
            print((top / log).read_text(), end="")


def main() -> int:
    if len(sys.argv) == 4:
        {"near": near, "far": far}[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))
        return 0
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    program = str(Path(sys.argv[1]).resolve())
    asked = subprocess.run([program, "tune", "status", "--state", "/nowhere"],
                           capture_output=True, text=True)
    lacks = [] if "no tuner listens" in asked.stderr else ["the tuner in the program"]
    if os.geteuid() != 0:
        lacks.append("root")
    if lacks:
        print(f"skipped: lacking {', '.join(lacks)}")
        return 0
    with tempfile.TemporaryDirectory() as top:
        itself = [sys.executable, "-B", str(Path(__file__).resolve())]
        hosts = {host: [*itself, host, program, top] for host in ("near", "far")}
        line = [program, "emulate", "--no-check", *PATH, "--far", " ".join(hosts["far"]),
                "--", *hosts["near"]]
        began = time.monotonic()
        code = subprocess.run(line).returncode
    print(f"two_tuners.py: {time.monotonic() - began:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
