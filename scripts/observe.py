#!/usr/bin/env python3
"""What `fullpipe observe` takes on many sockets, and whether its numbers are those of `ss -ti`.

A thousand connections between two network namespaces, of which a fifth sends 10 kB ten times a
second. `observe` looks at them every 100 ms as a table, as NDJSON, and with a trace: processor time
and largest memory of each. Then it looks once between two calls of `ss -tin`: of connections that
rest every field that `ss` shows must be equal, counters of the others must lie between the two.

    sudo scripts/observe.py --fullpipe target/release/fullpipe

Needs root, ip(8) and ss(8). The host's own network is not touched. Exit code 1: a field differs.
"""

import argparse
import json
import os
import platform
import resource
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from veth import FAR, hosts

PORT = 5001
CHUNK = bytes(1 << 16)

# Words of `ss -i` before a colon, the fields of tcp_info in their order, how many of the field's
# unit are one of `ss`, and what the field is where `ss` leaves the word out.
WORDS = {
    "wscale": (["snd_wscale", "rcv_wscale"], 1, 0),
    "rto": (["rto"], 1000, 0),
    "backoff": (["backoff"], 1, 0),
    "rtt": (["rtt", "rttvar"], 1000, 0),
    "ato": (["ato"], 1000, 0),
    "mss": (["snd_mss"], 1, 0),
    "pmtu": (["pmtu"], 1, 0),
    "rcvmss": (["rcv_mss"], 1, 0),
    "advmss": (["advmss"], 1, 0),
    "cwnd": (["snd_cwnd"], 1, 0),
    "ssthresh": (["snd_ssthresh"], 1, 0),
    "bytes_sent": (["bytes_sent"], 1, 0),
    "bytes_retrans": (["bytes_retrans"], 1, 0),
    "bytes_acked": (["bytes_acked"], 1, 0),
    "bytes_received": (["bytes_received"], 1, 0),
    "segs_out": (["segs_out"], 1, 0),
    "segs_in": (["segs_in"], 1, 0),
    "data_segs_out": (["data_segs_out"], 1, 0),
    "data_segs_in": (["data_segs_in"], 1, 0),
    "delivered": (["delivered"], 1, 0),
    "delivered_ce": (["delivered_ce"], 1, 0),
    "busy": (["busy_time"], 1000, 0),
    "rwnd_limited": (["rwnd_limited"], 1000, 0),
    "sndbuf_limited": (["sndbuf_limited"], 1000, 0),
    "unacked": (["unacked"], 1, 0),
    "retrans": (["retrans", "total_retrans"], 1, 0),
    "lost": (["lost"], 1, 0),
    "sacked": (["sacked"], 1, 0),
    "dsack_dups": (["dsack_dups"], 1, 0),
    "reordering": (["reordering"], 1, 3),
    "reord_seen": (["reord_seen"], 1, 0),
    "rcv_rtt": (["rcv_rtt"], 1000, 0),
    "rcv_space": (["rcv_space"], 1, 0),
    "rcv_ssthresh": (["rcv_ssthresh"], 1, 0),
    "notsent": (["notsent_bytes"], 1, 0),
    "minrtt": (["min_rtt"], 1000, 0),
    "rcv_ooopack": (["rcv_ooopack"], 1, 0),
    "snd_wnd": (["snd_wnd"], 1, 0),
    "rcv_wnd": (["rcv_wnd"], 1, 0),
    "rehash": (["rehash"], 1, 0),
}
# Words with a rate behind a space, in bits.
RATES = {"pacing_rate": "pacing_rate", "delivery_rate": "delivery_rate"}
# Times since an event, which pass between two looks.
SINCE = {"lastsnd": "last_data_sent", "lastrcv": "last_data_recv", "lastack": "last_ack_recv"}
COUNTERS = ["bytes_sent", "bytes_acked", "segs_out", "segs_in", "data_segs_out", "delivered"]


def serve():
    """Reads what comes, and answers the first bytes of each connection."""
    with socket.create_server((FAR, PORT), backlog=4096) as listener:
        ready = selectors.DefaultSelector()
        ready.register(listener, selectors.EVENT_READ)
        print("ready", flush=True)
        while True:
            for key, _ in ready.select():
                if key.fileobj is listener:
                    accepted = listener.accept()[0]
                    ready.register(accepted, selectors.EVENT_READ, "new")
                    continue
                if not key.fileobj.recv(len(CHUNK)):
                    ready.unregister(key.fileobj)
                    key.fileobj.close()
                elif key.data == "new":
                    key.fileobj.send(CHUNK[:5000])
                    ready.modify(key.fileobj, selectors.EVENT_READ)


def connect(many, busy):
    """Connections with a little behind them, of which the first go on."""
    flows = []
    for k in range(many):
        flow = socket.create_connection((FAR, PORT))
        flow.sendall(CHUNK[:20_000 * (k % 3 + 1)])
        flow.recv(5000, socket.MSG_WAITALL)
        flows.append(flow)
    # The last delayed ACKs, and tail loss probes that are not needed.
    time.sleep(2)
    print(" ".join(str(f.getsockname()[1]) for f in flows), flush=True)
    due = time.monotonic()
    while True:
        for flow in flows[:busy]:
            flow.send(CHUNK[:10_000])
        due += 0.1
        time.sleep(max(0, due - time.monotonic()))


def begin(until, words):
    """A process that ends with the script, and its first line."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    until.callback(process.wait)
    until.callback(process.terminate)
    line = process.stdout.readline()
    if not line:
        sys.exit(f"{words[-3:]} ended at once")
    return line


def cost(words):
    """Processor seconds and largest memory, MB, of a command."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{words}: ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def ss(near):
    """Words and their numbers, by local port; and when it was asked."""
    asked = time.monotonic()
    shown = subprocess.run([*near, "ss", "-tinHO", "state", "established"], check=True,
                           capture_output=True, text=True).stdout
    flows = {}
    for line in shown.splitlines():
        words = line.split()
        of = {"app_limited": "app_limited" in words}
        for k, word in enumerate(words):
            name, _, value = word.partition(":")
            if name in WORDS or name in SINCE:
                numbers = value.split("(")[0].removesuffix("ms").replace("/", ",").split(",")
                of[name] = [float(n) for n in numbers]
            elif word in RATES and words[k + 1].endswith("bps"):
                of[word] = float(words[k + 1].removesuffix("bps"))
        # Recv-Q, Send-Q, own address, the other's.
        flows[int(words[2].rpartition(":")[2])] = of
    return flows, asked


def observed(near, program):
    """Fields of tcp_info by local port."""
    words = [*near, program, "observe", "--format", "ndjson"]
    words += ["--interval", "50ms", "--duration", "50ms"]
    lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    # Of two looks the later.
    seen = map(json.loads, lines)
    return {int(o["local"].rpartition(":")[2]): o["tcp_info"] for o in seen}


def differences(ours, theirs, known):
    """Fields of a connection at rest that are not equal, and how many were compared."""
    wrong, compared = [], 0
    for word in known:
        fields, per, default = WORDS[word]
        values = theirs.get(word, [None] * len(fields))
        for field, value in zip(fields, values):
            own = ours.get(field)
            if value is None:
                # `ss` shows no threshold from 65,535 on.
                unset = own is None or own == default or (word == "ssthresh" and own >= 0xffff)
                equal = unset
            else:
                # Of three decimals, or whole milliseconds cut off.
                equal = own is not None and abs(own / per - value) < (0.0005 if per > 1 else 1e-9)
                equal |= own is not None and word in ("busy", "rwnd_limited", "sndbuf_limited") \
                    and own // per == value
            compared += 1
            if not equal:
                wrong.append((field, own, value))
    for word, field in RATES.items():
        if word in theirs:
            compared += 1
            if ours.get(field) is None or ours[field] * 8 != theirs[word]:
                wrong.append((field, ours.get(field), theirs[word]))
    compared += 1
    if bool(ours.get("delivery_rate_app_limited")) != theirs["app_limited"]:
        wrong.append(("delivery_rate_app_limited", ours, theirs["app_limited"]))
    return wrong, compared


def compare(near, program, rest, busy):
    """Prints what was compared; true if nothing is wrong."""
    before, first = ss(near)
    ours = observed(near, program)
    after, last = ss(near)
    passed = (last - first) * 1000 + 50
    # An older `ss` does not know the newest.
    known = [w for w in WORDS if any(w in of for of in [*before.values(), *after.values()])]
    wrong, compared, moved = [], 0, 0
    for port in rest:
        # One that moved, as by a retransmission of its peer, was not at rest.
        still = {w: v for w, v in before[port].items() if w not in SINCE}
        if still != {w: v for w, v in after[port].items() if w not in SINCE}:
            moved += 1
            continue
        found, n = differences(ours[port], before[port], known)
        wrong += [(port, *one) for one in found]
        compared += n
        for word, field in SINCE.items():
            at = before[port].get(word, [0])[0]
            compared += 1
            if not at <= ours[port].get(field, 0) <= at + passed + 10:
                wrong.append((port, field, ours[port].get(field), at))
    between, outside = 0, []
    for port in busy:
        for name in COUNTERS:
            low, high = (of[port].get(name, [0])[0] for of in (before, after))
            between += 1
            if not low <= ours[port][name] <= high:
                outside.append((port, name, ours[port][name], low, high))
    print(f"\n{len(rest) - moved} connections at rest: {compared} fields, {len(wrong)} differ; "
          f"{len(busy)} that send: {between} counters, {len(outside)} not between two of `ss`")
    for one in (wrong + outside)[:20]:
        print("differs:", *one)
    shown = {f for word in known for f in WORDS[word][0]}
    shown |= {*RATES.values(), *SINCE.values(), "delivery_rate_app_limited"}
    missing = sorted({f for flow in ours.values() for f in flow} - shown)
    print(f"not shown by `ss`, or 0 everywhere: {', '.join(missing)}")
    return not wrong and not outside and moved < len(rest)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fullpipe", type=os.path.abspath)
    parser.add_argument("--sockets", type=int, default=1000, help="[default: 1000]")
    parser.add_argument("--busy", type=int, default=200, help="of these, send [default: 200]")
    parser.add_argument("--seconds", type=int, default=30, help="of each format [default: 30]")
    parser.add_argument("--end", choices=["serve", "connect"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    if options.end == "serve":
        return serve()
    if options.end == "connect":
        return connect(options.sockets, options.busy)
    if os.geteuid() != 0 or not options.fullpipe:
        sys.exit("observe.py needs root and --fullpipe")
    # Whoever ends it finds nothing left.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with ExitStack() as until:
        near, far = until.enter_context(hosts())
        folder = Path(until.enter_context(tempfile.TemporaryDirectory()))
        me = [sys.executable, os.path.abspath(__file__), "--sockets", str(options.sockets),
              "--busy", str(options.busy), "--end"]
        begin(until, [*far, *me, "serve"])
        ports = [int(p) for p in begin(until, [*near, *me, "connect"]).split()]
        observe = [*near, options.fullpipe, "observe", "--interval", "100ms"]
        observe += ["--duration", f"{options.seconds}s"]
        print(f"{len(ports)} sockets, {options.busy} of which send, every 100 ms for "
              f"{options.seconds} s; Linux {platform.release()}\n")
        print("| | processor, s | of a core | memory, MB |\n|---|---|---|---|")
        for name, words in [
            ("table", []),
            ("NDJSON", ["--format", "ndjson"]),
            ("table and trace", ["--trace", folder / "flows.parquet"]),
            ("NDJSON and processes", ["--format", "ndjson", "--processes"]),
        ]:
            seconds, megabytes = cost([*observe, *words])
            print(f"| {name} | {seconds:.2f} | {100 * seconds / options.seconds:.1f} % "
                  f"| {megabytes:.0f} |", flush=True)
        rows = (folder / "flows.parquet").stat().st_size
        print(f"\nthe trace: {rows / (len(ports) * options.seconds * 10):.1f} bytes a row")
        if not compare(near, options.fullpipe, ports[options.busy:], ports[:options.busy]):
            sys.exit(1)


if __name__ == "__main__":
    main()
