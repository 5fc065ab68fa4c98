#!/usr/bin/env python3
"""Path emulators side by side: what each one does with the same echoes and the same iperf3.

    bench/emulators.py --fullpipe target/release/fullpipe [--json FILE] [--only NAME,...]

Every emulator that is here carries each cell of CELLS, one after the other, on hosts that it makes
or that are made for it, with a drop-tail buffer of one bandwidth-delay product at the bottleneck:

fullpipe   `fullpipe emulate`, whose verdict makes a table of its own
tbf        the kernel's token bucket on a router between two hosts; it has no delay
netem      the kernel's netem on that router: delay, rate and buffer both ways
mahimahi   `mm-delay` around `mm-link`, if they are on PATH; installed setuid, run as nobody
rattan     `rattan link`, if it is on PATH

First 200 ICMP echoes over the idle path, 5 to 15 ms apart; then iperf3 (CUBIC) for 10 s, of which
the first 3 do not count. While it counts, the machine's busy processors are read from /proc/stat
and the emulator's own from /proc/PID/stat: the former has both ends of TCP in it, the latter only
processes of the emulator, so nothing of what runs in the kernel. What devices lose on the way is no
part of any path; a socket of rattan that overflows is not seen. Runs beside which other programs
took more than a tenth of a core are named below the table.

Rates count IP packets, for tbf and netem too, whose own count has Ethernet's 14 bytes in it: 1448
of 1500 bytes are payload.

Needs root, iperf3 and iproute2. Namespaces are removed at the end, and those of a run that was
killed by the next; the host's own network is not touched. Prints tables in markdown.
"""

import argparse
import json
import math
import os
import platform
import pwd
import random
import re
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

MTU, MSS, ETHERNET = 1500, 1448, 14
ECHOES, ECHO_GAP = 200, 0.01  # s
SO_TIMESTAMPNS = 35  # no name of it in the standard library
OMIT, SECONDS = 3, 7  # of iperf3: what does not count, what does
GUARD = 0.3  # between a change at iperf3 and a look at the processors, s
PREFIX = "emulators-"  # of namespaces and folders, before the process id
WINDOW = 256 << 20  # what TCP may have under way: `fullpipe emulate` gives its hosts as much
HERE = Path(__file__).resolve()
TICK = os.sysconf("SC_CLK_TCK")
KERNEL_THREAD = 0x200000  # PF_KTHREAD among the flags in /proc/PID/stat
DISTURBED = 0.1  # cores that other programs may take, at most


class Cell:
    """A path: Mbit/s, round trip in ms, and the buffer in parts of their product."""

    def __init__(self, mbit, rtt_ms, buffer=1.0, alone=False):
        self.mbit, self.rtt_ms, self.buffer, self.alone = mbit, rtt_ms, buffer, alone

    def __str__(self):
        rate = f"{self.mbit / 1e3:g} Gbit/s" if self.mbit >= 1000 else f"{self.mbit:g} Mbit/s"
        deep = "" if self.buffer == 1 else f", {self.buffer:g} BDP"
        return f"{rate} x {self.rtt_ms} ms{deep}"

    @property
    def carries(self):
        """Mbit/s of payload."""
        return self.mbit * MSS / MTU

    def packets(self, parts=None):
        """In the buffer; in so many parts of the bandwidth-delay product."""
        product = self.mbit * 1e6 * self.rtt_ms / 1e3 / 8 / MTU
        return math.ceil(product * (self.buffer if parts is None else parts))


CELLS = [Cell(100, 40), Cell(1000, 100)]


class Failed(Exception):
    """What an emulator or a program on it said."""


# -- hosts ----------------------------------------------------------------------------------------


def sh(*words, **how):
    """The output of a command that has to work."""
    words = [str(word) for word in words]
    ran = subprocess.run(words, capture_output=True, text=True, **how)
    if ran.returncode != 0:
        raise Failed(f"{shlex.join(words)}: {(ran.stderr or ran.stdout).strip()[-500:]}")
    return ran.stdout


class Space:
    """A network namespace by name, new or that of a process, until the end of `until`."""

    def __init__(self, until, name, of=None):
        self.name = f"{PREFIX}{os.getpid()}-{name}"
        sh("ip", "netns", *(["attach", self.name, of] if of else ["add", self.name]))
        until.callback(remove, self.name)
        self.ip("link", "set", "dev", "lo", "up")
        net = "/proc/sys/net/ipv4"
        settings = {"tcp_rmem": f"4096 131072 {WINDOW}", "tcp_wmem": f"4096 16384 {WINDOW}"}
        settings |= {"tcp_no_metrics_save": "1", "ip_forward": "1"}
        lines = [f"echo {value} > {net}/{key}" for key, value in settings.items()]
        sh(*self.words("sh", "-ec", "; ".join(lines)))

    def ip(self, *words):
        sh("ip", "-n", self.name, *words)

    def words(self, *words):
        """The command on this host."""
        return ["ip", "netns", "exec", self.name, *map(str, words)]

    def lost(self):
        return devices(sh(*self.words("cat", "/proc/net/dev")))


def remove(name):
    pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True)
    for pid in pids.stdout.split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
    subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def sweep():
    """What a run left that could not tidy up."""
    folders = {folder.name: folder for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*")}
    spaces = [line.split()[0] for line in sh("ip", "netns", "list").splitlines()]
    for name in [*spaces, *folders]:
        made = re.match(rf"{PREFIX}(\d+)-", name)
        if made and not Path(f"/proc/{made[1]}").exists():
            remove(name) if name in spaces else shutil.rmtree(folders[name])


def background(until, words, log, **how):
    """A program that runs until the end of `until`, with a session of its own."""
    out = until.enter_context(open(log, "w"))
    process = subprocess.Popen(
        words, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, **how)
    until.callback(end, process)
    return process


def end(process):
    """Ask, then make sure."""
    if process.stdin:
        process.stdin.close()
    for how in (None, process.terminate, process.kill):
        if how:
            how()
        try:
            process.wait(timeout=3)
            return
        except subprocess.TimeoutExpired:
            pass


def appears(file, beside, log, seconds=20.0):
    """Wait for a file that somebody writes, as long as those `beside` live."""
    until = time.monotonic() + seconds
    while not file.exists():
        over = [process for process in beside if process.poll() is not None]
        if (over and not file.exists()) or time.monotonic() > until:
            said = log.read_text(errors="replace").strip()[-500:]
            raise Failed(said or f"{file.name} did not come within {seconds:g} s")
        time.sleep(0.02)


# -- the experiment, on the near host -------------------------------------------------------------


def near(folder, far):
    """Echoes and iperf3 to `far`, an address or the variable that has it."""
    folder, far = Path(folder), os.environ.get(far, far)
    try:
        came = {"rtt_ms": echoes(far)}
        came |= iperf(folder, far)
    except Failed as why:
        came = {"failed": str(why)}
    write(folder / "near.json", json.dumps(came))


def write(file, text):
    """Whole or not at all."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.rename(file)


def echoes(far):
    """Round trips in ms, stamped by the kernel as they come back.

    ping(8) would do, if it did not show whole milliseconds from 100 ms on.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as icmp:
        icmp.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        icmp.connect((far, 0))
        # The first ones may wait for a neighbour to be found.
        if not any(exchange(icmp, 5, 0.2)):
            raise Failed(f"{far} does not answer")
        return exchange(icmp, ECHOES, ECHO_GAP) or [math.nan]


def exchange(icmp, count, gap):
    """Round trips of so many echoes, in ms; those that do not come back within a second lack."""
    # Echoes of one exchange are not those of another.
    mark = int.from_bytes(os.urandom(2), "big")
    # A steady rhythm would meet whatever ticks on the way at one moment of the tick.
    uneven = random.Random(count)
    sent, came, due = [], [], time.monotonic()
    while len(came) < count:
        if time.monotonic() >= due:
            if len(sent) == count:
                break
            due += gap * uneven.uniform(0.5, 1.5) if len(sent) < count - 1 else 1.0
            request = struct.pack("!BBHHH56x", 8, 0, checksum(mark, len(sent)), mark, len(sent))
            sent.append(time.time_ns())
            icmp.send(request)
        elif select.select([icmp], [], [], max(0.0, due - time.monotonic()))[0]:
            packet, ancillary, _, _ = icmp.recvmsg(2048, 64)
            kind, _, _, whose, k = struct.unpack_from("!BBHHH", packet, 4 * (packet[0] & 15))
            stamps = [data for level, of, data in ancillary if of == SO_TIMESTAMPNS]
            if kind == 0 and whose == mark and stamps:
                seconds, nanos = struct.unpack("qq", stamps[0])
                came.append((seconds * 10**9 + nanos - sent[k]) / 1e6)
    return came


def checksum(mark, k):
    """Of an echo request whose data are zeros."""
    total = (8 << 8) + mark + k
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def iperf(folder, far):
    words = ["iperf3", "-c", far, "-C", "cubic", "-t", str(SECONDS), "-O", str(OMIT), "-J"]
    begun = time.monotonic()
    ran = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for file, at in (("begin", OMIT + GUARD), ("end", OMIT + SECONDS - GUARD)):
        time.sleep(max(0.0, begun + at - time.monotonic()))
        (folder / file).touch()
    try:
        out, _ = ran.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        ran.kill()
        raise Failed("iperf3 does not end") from None
    said = json.loads(out)
    if "error" in said or "sum_received" not in said.get("end", {}):
        raise Failed(f"iperf3: {said.get('error', 'no result')}")
    done = said["end"]
    return {
        "mbps": done["sum_received"]["bits_per_second"] / 1e6,
        "retransmits": done["sum_sent"]["retransmits"],
    }


# -- watching, from outside -----------------------------------------------------------------------


def busy():
    """Seconds that processors have worked since some moment: not idle, nor taken by a hypervisor.

    Idle time is exact where the tick stops meanwhile; what /proc/stat calls user and system is
    sampled by that tick, and programs that sleep before it comes are never seen.
    """
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    idle, iowait, steal = (int(fields[k]) for k in (3, 4, 7))
    return time.monotonic() * os.cpu_count() - (idle + iowait + steal) / TICK


def members(sessions):
    """Name, folder and fields of /proc/PID/stat of the processes of some sessions."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            head, _, tail = (folder / "stat").read_text().rpartition(")")
        except OSError:
            continue
        fields = tail.split()
        if int(fields[3]) in sessions:
            yield head.split("(", 1)[1], folder, fields


def own(sessions, names):
    """Processor seconds of an emulator's processes."""
    if not names:
        return 0.0
    found = [fields for name, _, fields in members(sessions) if name in names]
    return sum(int(fields[11]) + int(fields[12]) for fields in found) / TICK


def others():
    """Processor seconds of programs that are not ours, with those of their children that ended."""
    parent, spent = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parent[int(folder.name)] = int(fields[1])
        if not int(fields[6]) & KERNEL_THREAD:
            spent[int(folder.name)] = sum(map(int, fields[11:15])) / TICK

    def ours(pid):
        while pid in parent and pid != os.getpid():
            pid = parent[pid]
        return pid == os.getpid()

    return sum(seconds for pid, seconds in spent.items() if not ours(pid))


def devices(text):
    """Packets that the devices of a /proc/net/dev lost."""
    rows = [line.split(":", 1)[1].split() for line in text.splitlines()[2:]]
    return sum(int(row[3]) + int(row[11]) for row in rows)


def lost_in(sessions):
    """The same in every namespace in which a thread of some sessions is."""
    seen = {}
    for _, folder, _ in members(sessions):
        for thread in folder.glob("task/*"):
            try:
                seen.setdefault(os.readlink(thread / "ns/net"), (thread / "net/dev").read_text())
            except OSError:
                continue
    return sum(devices(text) for text in seen.values())


def watched(folder, beside, log, sessions=(), names=()):
    """What the near host brings, with the processors that worked meanwhile."""
    seen = []
    for mark, wait in (("begin", 30.0), ("end", SECONDS + 10.0)):
        # An echo or an iperf3 that fails leaves its reason instead of a mark.
        until = time.monotonic() + wait
        while not (folder / mark).exists() and not (folder / "near.json").exists():
            if time.monotonic() > until or any(p.poll() is not None for p in beside):
                break
            time.sleep(0.02)
        seen.append((time.monotonic(), busy(), own(sessions, names), others()))
    appears(folder / "near.json", beside, log, 40.0)
    came = json.loads((folder / "near.json").read_text())
    if "failed" in came:
        raise Failed(came["failed"])
    seconds, machine, mine, foreign = (end - begin for begin, end in zip(*seen))
    came["machine_cores"] = machine / seconds
    came["own_cores"] = mine / seconds if names else None
    came["other_cores"] = foreign / seconds
    return came


# -- emulators ------------------------------------------------------------------------------------


def near_words(folder, far):
    return [sys.executable, "-B", str(HERE), "--near", str(folder), far]


def hold(mark):
    """A command that says who it is and what it reaches, and stays until its input ends."""
    said = 'echo "$$ $MAHIMAHI_BASE$RATTAN_BASE" > "$0.new" && mv "$0.new" "$0"'
    return ["sh", "-c", f"{said} && exec cat >/dev/null", mark]


class Fullpipe:
    """Hosts, path and verdict from one command."""

    name = "fullpipe"

    def __init__(self, options):
        self.program = options.fullpipe

    def lacks(self):
        return None

    def run(self, cell, folder, until):
        words = [self.program, "emulate", "--rate", f"{cell.mbit:g}Mbit/s"]
        words += ["--rtt", f"{cell.rtt_ms}ms", "--buffer", f"{cell.buffer:g}BDP"]
        words += ["--format", "json", "--out", folder / "verdict.json"]
        words += ["--far", "iperf3 -s >/dev/null", "--", *near_words(folder, "FULLPIPE_FAR")]
        log = folder / "log"
        process = background(until, words, log)
        came = watched(folder, [process], log, {process.pid}, {Path(self.program).name[:15]})
        appears(folder / "verdict.json", [], log)
        process.wait(timeout=20)
        verdict = json.loads((folder / "verdict.json").read_text())
        checks = {check["name"]: check["measured"] for check in verdict["checks"]}
        losses = ("lost by devices", "refused by devices", "without room in memory")
        came["lost"] = sum(int(checks[name]) for name in losses)
        came["says"] = "true" if verdict["true"] else "flagged: " + "; ".join(verdict["flags"])
        came["verdict"] = verdict
        return came


class Router:
    """Two hosts and a router between them, whose devices have what the kernel calls a qdisc."""

    def run(self, cell, folder, until):
        hosts = [Space(until, name) for name in ("near", "mid", "far")]
        near, mid, far = hosts
        for i, host in enumerate((near, far)):
            pair = ["name", "wire", "mtu", MTU, "type", "veth", "peer", "name", f"to{i}"]
            host.ip("link", "add", *pair, "netns", mid.name)
            for on, device, last in ((host, "wire", 2), (mid, f"to{i}", 1)):
                on.ip("addr", "add", f"198.18.{i}.{last}/24", "dev", device)
                on.ip("link", "set", "dev", device, *self.single, "up")
            host.ip("route", "add", "default", "via", f"198.18.{i}.1")
        for i in range(2):
            sh(*mid.words("tc", "qdisc", "add", "dev", f"to{i}", "root", *self.qdisc(cell)))
        server = background(until, far.words("iperf3", "-s"), folder / "server")
        before = sum(host.lost() for host in hosts)
        log = folder / "log"
        client = background(until, near.words(*near_words(folder, "198.18.1.2")), log)
        came = watched(folder, [server], log)
        client.wait(timeout=10)
        came["lost"] = sum(host.lost() for host in hosts) - before
        came["says"] = self.says
        return came

    def tried(self, *qdisc):
        """Why the kernel will not have it, if so."""
        with ExitStack() as until:
            space = Space(until, "try")
            try:
                sh(*space.words("tc", "qdisc", "add", "dev", "lo", "root", *qdisc))
            except Failed as why:
                return f"this kernel has no {self.name} ({str(why).rsplit(': ', 1)[1]})"
        return None


class Tbf(Router):
    """Rate and buffer, and no delay."""

    name, says, single = "tbf", "no delay: round trips do not compare", []

    def __init__(self, _):
        pass

    def lacks(self):
        return None if shutil.which("tc") else "there is no tc"

    def qdisc(self, cell):
        frame = MTU + ETHERNET
        # As much at once as the rate sends in a millisecond.
        burst = max(2 * frame, int(cell.mbit * 1e6 / 8 * 1e-3))
        rate = int(cell.mbit * 1e6 * frame / MTU)
        return ["tbf", "rate", f"{rate}bit", "burst", burst, "limit", cell.packets() * frame]


class Netem(Router):
    """Delay, rate and buffer in one queue."""

    # Its limit counts what TCP hands over at once as one: devices send single segments.
    name, says, single = "netem", "-", ["gso_max_segs", 1]

    def __init__(self, _):
        pass

    def lacks(self):
        if not shutil.which("tc"):
            return "there is no tc"
        return self.tried("netem", "delay", "1ms", "rate", "1mbit")

    def qdisc(self, cell):
        rate = int(cell.mbit * 1e6 * (MTU + ETHERNET) / MTU)
        # What is under way on this side waits in the same queue.
        limit = cell.packets() + cell.packets(0.5)
        return ["netem", "delay", f"{cell.rtt_ms / 2:g}ms", "rate", f"{rate}bit", "limit", limit]


class Mahimahi:
    """Two nested hosts, each behind a TUN device of its own processes."""

    name = "mahimahi"

    def __init__(self, _):
        pass

    def lacks(self):
        for program in ("mm-delay", "mm-link"):
            found = shutil.which(program)
            if not found:
                return f"{program} is not on PATH"
            if not os.stat(found).st_mode & 0o4000:
                return f"{found} is not setuid root"
        return None

    def run(self, cell, folder, until):
        folder.chmod(0o777)
        base = Space(until, "base")
        server = background(until, base.words("iperf3", "-s"), folder / "server")
        trace = folder / "trace"
        # The millisecond of each packet in a second that repeats.
        rate = round(cell.mbit * 1e6 / 8 / MTU)
        trace.write_text("".join(f"{math.ceil(1000 * k / rate)}\n" for k in range(1, rate + 1)))
        outer, delay = self.inside(
            until, folder, base, "delay", [shutil.which("mm-delay"), f"{cell.rtt_ms // 2}"], {})
        link = [shutil.which("mm-link"), trace, trace]
        for side in ("uplink", "downlink"):
            link += [f"--{side}-queue=droptail", f"--{side}-queue-args=packets={cell.packets()}"]
        # Not started by mm-delay: forwarding has to be switched on in between.
        address = (folder / "delay").read_text().split()[1]
        inner, shaped = self.inside(
            until, folder, outer, "link", [*link, "--"], {"MAHIMAHI_BASE": address})
        both = [delay, shaped]
        sessions = {process.pid for process in both}
        before = lost_in(sessions) + base.lost()
        log = folder / "log"
        client = background(until, inner.words(*near_words(folder, address)), log)
        came = watched(folder, [*both, server], log, sessions, {"mm-delay", "mm-link"})
        client.wait(timeout=10)
        came["lost"] = lost_in(sessions) + base.lost() - before
        came["says"] = "-"
        return came

    def inside(self, until, folder, space, name, words, variables):
        """The host that a shell of mahimahi makes, and the shell."""
        nobody, mark, log = pwd.getpwnam("nobody"), folder / name, folder / f"{name}.log"
        # As any user: it refuses root, and becomes root by itself for what needs it.
        become = "import os, sys; u, g = map(int, sys.argv[1:3]); os.setgroups([]); os.setgid(g); "
        become += "os.setuid(u); os.execv(sys.argv[3], sys.argv[3:])"
        words = [sys.executable, "-c", become, nobody.pw_uid, nobody.pw_gid, *words]
        process = background(
            until, space.words(*words, *hold(mark)), log,
            env={**os.environ, **variables}, stdin=subprocess.PIPE)
        appears(mark, [process], log)
        return Space(until, name, of=mark.read_text().split()[0]), process


class Rattan:
    """A process between two pairs of veth devices."""

    name = "rattan"

    def __init__(self, _):
        pass

    def lacks(self):
        return None if shutil.which("rattan") else "rattan is not on PATH"

    def run(self, cell, folder, until):
        base = Space(until, "base")
        server = background(until, base.words("iperf3", "-s"), folder / "server")
        words = [shutil.which("rattan"), "link"]
        for side in ("uplink", "downlink"):
            words += [f"--{side}-bandwidth", f"{cell.mbit:g}Mbps"]
            words += [f"--{side}-delay", f"{cell.rtt_ms / 2:g}ms", f"--{side}-queue", "droptail"]
            words += [f"--{side}-queue-args", json.dumps({"packet_limit": cell.packets()})]
        # Its namespaces have names, and must not outlive it: it sees a folder of its own.
        apart = ["sh", "-c", 'mount -t tmpfs none /run/netns && exec "$0" "$@"']
        log, mark = folder / "log", folder / "host"
        process = background(
            until, base.words(*apart, *words, "--", *hold(mark)), log, stdin=subprocess.PIPE)
        appears(mark, [process], log)
        pid, address = mark.read_text().split()
        inner = Space(until, "inner", of=pid)
        before = lost_in({process.pid}) + base.lost()
        client = background(until, inner.words(*near_words(folder, address)), folder / "near.log")
        came = watched(folder, [process, server], log, {process.pid}, {"rattan"})
        client.wait(timeout=10)
        came["lost"] = lost_in({process.pid}) + base.lost() - before
        came["says"] = "-"
        return came


EMULATORS = [Fullpipe, Tbf, Netem, Mahimahi, Rattan]


# -- what came of it ------------------------------------------------------------------------------


def quantile(values, part):
    """The smallest value that so many parts do not exceed."""
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]


def row(cells):
    return "| " + " | ".join(cells) + " |"


def cores(value):
    return "in the kernel" if value is None else f"{value:.2f}"


def compared(runs):
    """The table of all."""
    heads = ["path", "emulator", "round trip, ms: least", "median", "p99", "iperf3, Mbit/s"]
    heads += ["of what the rate carries", "sent again", "busy cores: machine", "emulator"]
    heads += ["lost by devices", "says itself"]
    out = [row(heads), "|---" * len(heads) + "|"]
    for cell, name, came in runs:
        words = [str(cell), name]
        if "failed" in came:
            words += ["-"] * 9 + ["failed: " + came["failed"].replace("\n", " ")[-200:]]
        else:
            rtts = came["rtt_ms"]
            words += [f"{v:.2f}" for v in (min(rtts), quantile(rtts, 0.5), quantile(rtts, 0.99))]
            words += [f"{came['mbps']:.1f}", f"{100 * came['mbps'] / cell.carries:.1f} %"]
            words += [str(came["retransmits"]), f"{came['machine_cores']:.2f}"]
            words += [cores(came["own_cores"]), str(came["lost"]), came["says"].split(":")[0]
                      if came["says"].startswith("flagged") else came["says"]]
        out.append(row(words))
    return "\n".join(out)


def verdicts(runs):
    """What `fullpipe emulate` measured of itself."""
    heads = ["path", "rate forward, Mbit/s", "back", "delay forward, ms", "back"]
    heads += ["late, ms: p50", "p99", "lost", "path's thread, cores", "verdict"]
    out = [row(heads), "|---" * len(heads) + "|"]
    for cell, _, came in runs:
        if "verdict" not in came:
            continue
        verdict = came["verdict"]
        checks = {check["name"]: check["measured"] for check in verdict["checks"]}
        words = [str(cell)]
        words += [f"{checks[f'rate {way}']:.1f}" for way in ("forward", "back")]
        words += [f"{checks[f'delay {way}']:.2f}" for way in ("forward", "back")]
        words += [f"{verdict['late_ms'][part]:.3f}" for part in ("p50", "p99")]
        words += [str(came["lost"]), f"{verdict['cores']:.2f}", came["says"]]
        out.append(row(words))
    return "\n".join(out)


def conditions(options):
    """What a reader has to know of the machine."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    before = busy(), time.monotonic()
    time.sleep(1)
    return {
        "cores": os.cpu_count(),
        "processor": model[1] if model else platform.machine(),
        "kernel": platform.release(),
        "busy_before_cores": (busy() - before[0]) / (time.monotonic() - before[1]),
        "load": os.getloadavg()[0],
        "fullpipe": sh(options.fullpipe, "--version").split("\n")[0],
        "iperf3": sh("iperf3", "--version").split("\n")[0],
    }


def measure(emulator, cell):
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-") as folder:
        Path(folder).chmod(0o755)
        inner = Path(folder) / "run"
        inner.mkdir()
        with ExitStack() as until:
            try:
                return emulator.run(cell, inner, until)
            except Failed as why:
                return {"failed": str(why)}


def main():
    if sys.argv[1:2] == ["--near"]:
        near(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fullpipe", required=True, help="the program")
    parser.add_argument("--only", metavar="NAME,...", help="these emulators")
    parser.add_argument("--alone", default="2500,5000,6000", metavar="MBIT,...",
                        help="rates for fullpipe besides, at 100 ms (default: 2500,5000,6000)")
    parser.add_argument("--alone-buffer", type=float, default=0.25, metavar="BDP",
                        help="buffer at those (default: 0.25)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything measured goes there")
    options = parser.parse_args()
    lacks = [tool for tool in ("iperf3", "ip") if not shutil.which(tool)]
    if os.geteuid() != 0 or lacks:
        lacking = ", ".join(lacks) or "root"
        raise SystemExit(f"needs root, iperf3 and ip(8); lacking: {lacking}")
    options.fullpipe = shutil.which(options.fullpipe) or str(Path(options.fullpipe).resolve())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that namespaces go
    sweep()
    wanted = options.only.split(",") if options.only else [kind.name for kind in EMULATORS]
    unknown = set(wanted) - {kind.name for kind in EMULATORS}
    if unknown:
        raise SystemExit(f"no such emulator: {', '.join(sorted(unknown))}")
    rates = [float(rate) for rate in options.alone.split(",") if rate]
    alone = [Cell(rate, 100, options.alone_buffer, alone=True) for rate in rates]
    here, missing = [], []
    for kind in EMULATORS:
        if kind.name in wanted:
            emulator = kind(options)
            why = emulator.lacks()
            missing.append((kind.name, why)) if why else here.append(emulator)
    machine = conditions(options)
    runs = []
    for cell in CELLS + alone:
        for emulator in here:
            if cell.alone and not isinstance(emulator, Fullpipe):
                continue
            runs.append((cell, emulator.name, measure(emulator, cell)))
            told = runs[-1][2]
            print(f"{cell}, {emulator.name}: {told.get('failed') or round(told['mbps'], 1)}",
                  file=sys.stderr)
    print(compared(runs))
    for cell, name, came in runs:
        if came.get("other_cores", 0) > DISTURBED:
            taken = came["other_cores"]
            print(f"\n{cell}, {name}: disturbed by other programs, {taken:.2f} cores")
    for name, why in missing:
        print(f"\n{name} is not here: {why}")
    if any("verdict" in came for _, _, came in runs):
        print("\n" + verdicts(runs))
    print(f"\n{machine['cores']} cores ({machine['processor']}), Linux {machine['kernel']}, "
          f"{machine['busy_before_cores']:.2f} of them busy before; {machine['fullpipe']}, "
          f"{machine['iperf3']}")
    if options.json:
        rows = [
            {"emulator": name, "mbit": cell.mbit, "path_ms": cell.rtt_ms, "buffer_bdp": cell.buffer,
             "carries_mbit": cell.carries, **came} for cell, name, came in runs
        ]
        absent = {name: why for name, why in missing}
        options.json.write_text(
            json.dumps({"machine": machine, "runs": rows, "missing": absent}, indent=1) + "\n")


if __name__ == "__main__":
    main()
