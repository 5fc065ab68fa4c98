#!/usr/bin/env python3
"""The kernel's netem and tbf held against fullpipe's own path emulator, in one kernel.

    bench/netem.py --fullpipe target/release/fullpipe [--json FILE]
    bench/netem.py --fullpipe target/release/fullpipe --kernel LINUX [--json FILE]
    bench/netem.py --config

Each path of CELLS is made twice, by `fullpipe emulate` and by `fullpipe emulate --by netem`, and
carries the same flow of the kernel's TCP for SECONDS, of which the first OMIT do not count. Of
either, and as a ratio:

goodput        bytes acknowledged in the part that counts, Mbit/s
base RTT       median of 40 echoes (ICMP) over the idle path, ms
largest RTT    of the flow's smoothed RTT, sampled every 2 ms: base and full buffer
loss events    times that TCP began to recover (TCPSackRecovery and TCPTimeouts in /proc/net/netstat)
lost           packets that the buffer dropped, as the emulator counts them

A kernel without netem is skipped, with the reason. `--kernel LINUX` runs it in a User Mode Linux
instead, with this machine's files (read only): `--config` prints what its configuration needs
beside `make ARCH=um defconfig`. Needs root, whose namespaces it takes, and python3.
"""

import argparse
import json
import os
import platform
import re
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from emulators import Failed, exchange, row

PORT = 5201
ECHOES = 40
SECONDS, OMIT = 20, 4
SAMPLE = 0.002  # s
HERE = Path(__file__).resolve()
OURS, NETEM = "fullpipe", "netem"

# Mbit/s, round trip in ms, buffer in parts of their product.
CELLS = [
    (rate, rtt, buffer) for rate in (20, 50) for rtt in (20, 40) for buffer in (0.5, 1)
]
LAWS = ["reno", "cubic"]

CONFIG = """\
CONFIG_HOSTFS=y
CONFIG_DEVTMPFS=y
CONFIG_TMPFS=y
CONFIG_BINFMT_SCRIPT=y
CONFIG_NAMESPACES=y
CONFIG_UTS_NS=y
CONFIG_PID_NS=y
CONFIG_USER_NS=y
CONFIG_NET_NS=y
CONFIG_NET=y
CONFIG_INET=y
CONFIG_PACKET=y
CONFIG_UNIX=y
CONFIG_INET_DIAG=y
CONFIG_TCP_CONG_ADVANCED=y
CONFIG_TCP_CONG_CUBIC=y
CONFIG_HIGH_RES_TIMERS=y
CONFIG_NETDEVICES=y
CONFIG_NET_CORE=y
CONFIG_TUN=y
CONFIG_VETH=y
CONFIG_NET_SCHED=y
CONFIG_NET_SCH_NETEM=y
CONFIG_NET_SCH_TBF=y
CONFIG_NET_SCH_HTB=y
CONFIG_NET_SCH_FQ=y
"""

# The first process of the guest; words in braces come from boot().
INIT = """\
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mount -t hostfs -o {folder} hostfs /mnt
ip link set dev lo up
export PATH={path} HOME=/tmp
{line} >/mnt/out 2>/mnt/err
echo $? >/mnt/code
{python} -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
"""


# -- on the hosts ---------------------------------------------------------------------------------


def far():
    """Takes what comes on one connection."""
    with socket.create_server(("", PORT)) as server:
        connection, _ = server.accept()
        with connection:
            while connection.recv(1 << 18):
                pass


def counters():
    """TcpExt of this namespace."""
    lines = Path("/proc/net/netstat").read_text().splitlines()
    names, values = [line.split()[1:] for line in lines if line.startswith("TcpExt:")][:2]
    return dict(zip(names, map(int, values)))


def info(connection):
    """Smoothed RTT in ms, and bytes acknowledged (`struct tcp_info`, include/uapi/linux/tcp.h)."""
    told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
    return struct.unpack_from("I", told, 68)[0] / 1e3, struct.unpack_from("Q", told, 120)[0]


def near(out, law, seconds):
    """Echoes, then a flow for so long; what came of it goes into a file."""
    address, seconds = os.environ["FULLPIPE_FAR"], float(seconds)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as icmp:
        icmp.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
        icmp.connect((address, 0))
        exchange(icmp, 3, 0.05)
        base = statistics.median(exchange(icmp, ECHOES, 0.03))
    begun = time.monotonic()
    with socket.create_connection((address, PORT)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, law.encode())
        sender = threading.Thread(target=send, args=(connection, begun + seconds), daemon=True)
        sender.start()
        time.sleep(OMIT)
        first, before, largest = info(connection)[1], counters(), 0.0
        since = time.monotonic()
        while time.monotonic() < begun + seconds:
            rtt, acked = info(connection)
            largest = max(largest, rtt)
            time.sleep(SAMPLE)
        took, after = time.monotonic() - since, counters()
        sender.join()
    began = ("TCPSackRecovery", "TCPTimeouts")
    came = {
        "goodput_mbps": (acked - first) * 8 / took / 1e6,
        "base_ms": base,
        "largest_ms": largest,
        "loss_events": sum(after[name] - before[name] for name in began),
    }
    Path(out).write_text(json.dumps(came))


def send(connection, until):
    data = bytes(1 << 16)
    while time.monotonic() < until:
        connection.send(data)


# -- one flow over one path -----------------------------------------------------------------------


def measure(program, by, cell, law, seconds):
    rate, rtt, buffer = cell
    me = [sys.executable, "-B", str(HERE)]
    with tempfile.TemporaryDirectory(prefix="netem-") as folder:
        came, said = Path(folder) / "came", Path(folder) / "said"
        words = [program, "emulate", "--by", by, "--rate", f"{rate}Mbit/s", "--rtt", f"{rtt}ms"]
        words += ["--buffer", f"{buffer}BDP", "--format", "json", "--out", said]
        words += ["--far", " ".join([*me, "--far-host"]), "--"]
        words += [*me, "--near-host", came, law, str(seconds)]
        ran = subprocess.run(list(map(str, words)), capture_output=True, text=True)
        if not came.exists() or not said.exists():
            raise Failed(f"{by}: {ran.stderr.strip()[-500:]}")
        found, verdict = json.loads(came.read_text()), json.loads(said.read_text())
        found["lost"] = verdict["links"][0]["buffer_drops"]
        found["verdict"] = verdict
        return found


def lacks(program):
    """Why this kernel cannot: what the program itself says of a path of a moment."""
    words = [program, "emulate", "--by", NETEM, "--rate", "10Mbit/s", "--rtt", "10ms"]
    ran = subprocess.run([*words, "--no-check", "--", "true"], capture_output=True, text=True)
    return ran.stderr.strip() if ran.returncode else None


# -- a guest --------------------------------------------------------------------------------------


def boot(kernel, options):
    """This script in a User Mode Linux; its output, and its exit code."""
    with tempfile.TemporaryDirectory(prefix="netem-") as folder:
        line = [sys.executable, "-B", HERE, "--fullpipe", options.fullpipe, "--json", "/mnt/json"]
        for name in ("seconds", "repeat", "cells", "laws"):
            line += [f"--{name}", getattr(options, name)]
        init = Path(folder) / "init"
        init.write_text(INIT.format(
            folder=folder, path=os.environ["PATH"], python=sys.executable,
            line=" ".join(map(str, line))))
        init.chmod(0o755)
        words = [kernel, "root=none", "rootfstype=hostfs", "ro", f"init={init}", "mem=512M"]
        with open(Path(folder) / "console", "w") as console:
            subprocess.run(
                [*map(str, words), "con=null", "con0=null,fd:1"], stdin=subprocess.DEVNULL,
                stdout=console, stderr=subprocess.STDOUT)
        read = {name: Path(folder) / name for name in ("out", "err", "code", "json", "console")}
        text = {name: file.read_text() for name, file in read.items() if file.exists()}
    sys.stderr.write(text.get("err", ""))
    sys.stdout.write(text.get("out", ""))
    if "code" not in text:
        raise SystemExit(f"{kernel} ended early: {text['console'].strip()[-500:]}")
    if options.json and "json" in text:
        options.json.write_text(text["json"])
    return int(text["code"])


# -- what came of it ------------------------------------------------------------------------------


QUANTITIES = [
    ("goodput, Mbit/s", "goodput_mbps", 2),
    ("base RTT, ms", "base_ms", 2),
    ("largest RTT, ms", "largest_ms", 1),
    ("loss events", "loss_events", 0),
    ("lost", "lost", 0),
]


def held(netem, ours, digits):
    """netem, fullpipe, and the first in parts of the second."""
    ratio = "-" if ours == 0 else f"{netem / ours:.3f}"
    return f"{netem:.{digits}f} / {ours:.{digits}f} = {ratio}"


def table(runs):
    """Means over repetitions."""
    heads = ["path", "TCP", *(name for name, _, _ in QUANTITIES)]
    out = [row(heads), "|---" * len(heads) + "|"]
    for (rate, rtt, buffer), law in dict.fromkeys((run["cell"], run["law"]) for run in runs):
        words = [f"{rate} Mbit/s, {rtt} ms, {buffer:g} BDP", law]
        for _, key, digits in QUANTITIES:
            means = []
            for by in (NETEM, OURS):
                of = [run[key] for run in runs if (run["cell"], run["law"], run["by"])
                      == ((rate, rtt, buffer), law, by)]
                means.append(statistics.mean(of))
            words.append(held(*means, digits))
        out.append(row(words))
    return "\n".join(out)


def flags(runs):
    """What the runs say of themselves."""
    out = []
    for by in (NETEM, OURS):
        of = [run for run in runs if run["by"] == by]
        flagged = [run for run in of if not run["verdict"]["true"]]
        out.append(f"{by}: {len(of) - len(flagged)} of {len(of)} runs true to their specification")
        said = [flag for run in flagged for flag in run["verdict"]["flags"]]
        out += [f"  {said.count(name)} x {name}"
                for name in dict.fromkeys(said)]
    return "\n".join(out)


def main():
    if sys.argv[1:2] == ["--far-host"]:
        return far()
    if sys.argv[1:2] == ["--near-host"]:
        return near(*sys.argv[2:])
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fullpipe", help="the program")
    parser.add_argument("--kernel", help="run in this User Mode Linux")
    parser.add_argument("--config", action="store_true", help="print what its configuration needs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything measured goes there")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="length of a flow")
    parser.add_argument("--repeat", type=int, default=2, metavar="N", help="flows of each kind")
    parser.add_argument("--cells", metavar="K,...", help="these paths, counted from 0",
                        default=",".join(map(str, range(len(CELLS)))))
    parser.add_argument("--laws", metavar="NAME,...", default=",".join(LAWS), help="these modules")
    options = parser.parse_args()
    if options.config:
        print(CONFIG, end="")
        return 0
    if not options.fullpipe:
        parser.error("--fullpipe is needed")
    options.fullpipe = str(Path(shutil.which(options.fullpipe) or options.fullpipe).resolve())
    if options.kernel:
        return boot(Path(options.kernel).resolve(), options)
    why = lacks(options.fullpipe)
    if why:
        print(f"skipped: {why}")
        return 0
    cells = [CELLS[int(k)] for k in options.cells.split(",")]
    runs = []
    # In turns, so that what the machine does meanwhile is shared.
    for cell in cells:
        for law in options.laws.split(","):
            for by in [OURS, NETEM] * options.repeat:
                run = {"cell": cell, "law": law, "by": by}
                run |= measure(options.fullpipe, by, cell, law, options.seconds)
                runs.append(run)
                print(cell, law, by, {k: v for k, v in run.items() if k != "verdict"},
                      file=sys.stderr, flush=True)
    print(table(runs))
    print("\n" + flags(runs))
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    print(f"\nLinux {platform.release()}, {os.cpu_count()} cores "
          f"({model[1] if model else platform.machine()}), {time.strftime('%Y-%m-%d')}")
    if options.json:
        options.json.write_text(json.dumps(runs, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
