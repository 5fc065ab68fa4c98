#!/usr/bin/env python3
"""What the tuner's laws cost in throughput: iperf3 over an unshaped pair of veth devices.

Nothing limits such a pair but the processor, so that every nanosecond per ACK shows. Runs of the
kernel's CUBIC and of the law take turns; the table has the median of the ratios of neighbours, and
the smallest and largest of them.

    sudo scripts/veth.py --fullpipe target/release/fullpipe

Needs root, iperf3, ip(8) and a fullpipe with the tuner. Two network namespaces are made and taken
away again; the host's own network is not touched.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

from net100 import beside, own_group, says

LAWS = [
    "reno", "aimd(increase=4,decrease=0.125)", "highspeed", "scalable", "htcp", "bic",
    "cubic(c=0.4)", "westwood", "vegas", "fast", "hstcp-lp",
]
NEAR, FAR = "10.254.0.1", "10.254.0.2"


def ip(*words):
    subprocess.run(["ip", *words], check=True)


@contextmanager
def hosts():
    """Two namespaces with a pair of devices between them."""
    names = [f"fullpipe-veth-{os.getpid()}-{end}" for end in "ab"]
    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", "v0", "netns", names[0], "type", "veth",
           "peer", "name", "v1", "netns", names[1])
        for name, device, address in [(names[0], "v0", NEAR), (names[1], "v1", FAR)]:
            ip("-n", name, "addr", "add", f"{address}/24", "dev", device)
            ip("-n", name, "link", "set", device, "up")
        yield [["nsenter", f"--net=/run/netns/{name}", "--"] for name in names]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


def gbps(near, seconds, algorithm, group=None):
    """Of one transfer, and the algorithm that it ran at its end."""
    words = [*near, "iperf3", "-c", FAR, "-t", str(seconds), "-J"]
    if algorithm:
        words += ["-C", algorithm]
    join = (lambda: (group / "cgroup.procs").write_text("0")) if group else None
    ran = subprocess.run(words, capture_output=True, text=True, preexec_fn=join)
    answer = json.loads(ran.stdout)
    if "error" in answer:
        sys.exit(f"iperf3: {answer['error']}")
    end = answer["end"]
    return end["sum_received"]["bits_per_second"] / 1e9, end["sender_tcp_congestion"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fullpipe", required=True, type=os.path.abspath)
    parser.add_argument("--seconds", type=int, default=3, help="of each transfer [default: 3]")
    parser.add_argument("--pairs", type=int, default=5, help="of each law [default: 5]")
    options = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("iperf3"):
        sys.exit("veth.py needs root and iperf3")
    # Whoever ends it finds nothing left.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print("| law | Gbit/s | the kernel's CUBIC, Gbit/s | ratio | smallest to largest |")
    print("|---|---|---|---|---|")
    with ExitStack() as until:
        near, far = until.enter_context(hosts())
        folder = Path(until.enter_context(tempfile.TemporaryDirectory()))
        server = subprocess.Popen([*far, "iperf3", "-s"], stdout=subprocess.DEVNULL)
        until.callback(server.wait)
        until.callback(server.terminate)
        time.sleep(0.3)
        group = until.enter_context(own_group())
        for k, law in enumerate(LAWS):
            policy = folder / f"{k}.toml"
            policy.write_text(f'[[path]]\nname = "veth"\nto = "{FAR}"\nstack = "{law}"\n')
            daemon = [*near, options.fullpipe, "tune", "run", policy, "--state", folder / str(k)]
            daemon += ["--own-namespace", "--cgroup", group]
            with beside(daemon, folder / "log", says("^ready$"), signal.SIGTERM):
                tuned, own = [], []
                for _ in range(options.pairs):
                    rate, ran = gbps(near, options.seconds, None, group)
                    if not ran.startswith("fp_"):
                        sys.exit(f"{law}: the flow ran {ran}")
                    tuned.append(rate)
                    rate, ran = gbps(near, options.seconds, "cubic")
                    if ran != "cubic":
                        sys.exit(f"the flow to compare with ran {ran}")
                    own.append(rate)
            ratios = sorted(a / b for a, b in zip(tuned, own))
            print(f"| `{law}` | {statistics.median(tuned):.1f} | {statistics.median(own):.1f} "
                  f"| {statistics.median(ratios):.2f} | {ratios[0]:.2f} to {ratios[-1]:.2f} |",
                  flush=True)


if __name__ == "__main__":
    main()
