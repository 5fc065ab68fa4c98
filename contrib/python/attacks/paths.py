"""Paths that bend, cut, delay and lose datagrams, that change, and routers that lie."""

import contextlib
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from harness import Serving, Skipped, attack, ended
from files import digest


class Proxy:
    """Between clients and a server, one socket for each client, like a translator of addresses.
    Parts of 1: lost, doubled, delayed, bent, cut; `rebind`: another port after so many seconds."""

    def __init__(self, server, lost=0, doubled=0, delayed=0, bent=0, cut=0, rebind=0, seed=7):
        self.faults = lost, doubled, delayed, bent, cut
        self.dice, self.rebind, self.to = random.Random(seed), rebind, server.address
        self.front = self.socket()
        self.front.bind(("127.0.0.1", 0))
        self.port = self.front.getsockname()[1]
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    @staticmethod
    def socket():
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        made.setblocking(False)
        return made

    def up(self):
        made = self.socket()
        made.connect(self.to)
        return made

    def damage(self, datagram):
        """What becomes of a datagram: pairs of delay and bytes."""
        lost, doubled, delayed, bent, cut = self.faults
        chance = self.dice.random
        if chance() < lost:
            return
        copies = 2 if chance() < doubled else 1
        datagram = bytearray(datagram)
        if chance() < bent:
            datagram[self.dice.randrange(len(datagram))] ^= 1 << self.dice.randrange(8)
        if chance() < cut:
            datagram = datagram[: 1 + self.dice.randrange(len(datagram))]
        for _ in range(copies):
            yield 0.001 + 0.02 * chance() if chance() < delayed else 0, bytes(datagram)

    def run(self):
        clients, since, waiting = {}, {}, []
        while not self.over.is_set():
            ready = select.select([self.front, *clients.values()], [], [], 0.002 if waiting else 0.1)
            now = time.monotonic()
            for late in [w for w in waiting if w[0] <= now]:
                waiting.remove(late)
                late[1](late[2])
            for sock in ready[0]:
                for _ in range(64):
                    try:
                        datagram, source = sock.recvfrom(65536)
                    except OSError:
                        break
                    if sock is self.front:
                        if source not in clients:
                            clients[source], since[source] = self.up(), now
                        if self.rebind and now > since[source] + self.rebind:
                            clients[source].close()
                            clients[source], since[source] = self.up(), float("inf")
                        send = clients[source].send
                    else:
                        back = next((a for a, s in clients.items() if s is sock), None)
                        if back is None:
                            break
                        send = lambda d, to=back: self.front.sendto(d, to)
                    send = quietly(send)
                    for delay, bytes_ in self.damage(datagram):
                        if delay:
                            waiting.append((now + delay, send, bytes_))
                        else:
                            send(bytes_)

    def end(self):
        self.over.set()
        self.thread.join()


def quietly(send):
    def call(datagram):
        with contextlib.suppress(OSError):
            send(datagram)

    return call


FAULTS = {
    "clean": {}, "loss 5 %, 1 % doubled, 2 % late": {"lost": 0.05, "doubled": 0.01, "delayed": 0.02},
    "and bent 1e-3": {"lost": 0.05, "doubled": 0.01, "delayed": 0.02, "bent": 1e-3},
    "bent 1e-2": {"bent": 1e-2}, "cut 1e-3": {"cut": 1e-3}, "cut and bent 1e-2":
    {"cut": 1e-2, "bent": 1e-2},
}


@attack("t11", "24 copies over paths that bend and cut", "8 of 24 fail; handshakes fail")
def faults(folder):
    files = folder / "files"
    files.mkdir()
    source = folder / "p"
    source.write_bytes(os.urandom(3_000_000))
    seen, wrong = {}, 0
    with Serving(folder, "--files", files, "--max-tests-per-peer", 16, "--overwrite") as server:
        (files / "y").write_bytes(source.read_bytes())
        for name, about in FAULTS.items():
            whole = 0
            for encrypt in ([], ["--encrypt"]):
                for put in (True, False):
                    proxy = Proxy(server, **about)
                    at = f"127.0.0.1:{proxy.port}"
                    target = files / "x" if put else folder / "got"
                    target.unlink(missing_ok=True)
                    way = [source, f"{at}:x"] if put else [f"{at}:y", target]
                    ended(server.client("send", *way, *encrypt), 120)
                    proxy.end()
                    good = digest(target) == digest(source)
                    whole += good
                    wrong += target.exists() and not good
            seen[name] = whole
        panics = server.panics()
    held = wrong == 0 and not panics and all(whole == 4 for whole in seen.values())
    return f"whole of 4: {seen}; wrong files {wrong}", held


@attack("t12", "clients and servers that die, stop, move", "rebinding: rc 3 after 18 s; death after 15.5 s")
def vanish(folder):
    seen, held = {}, True
    with Serving(folder) as server:
        client = server.client("send", "@", "-t", "60s")
        time.sleep(2)
        client.kill()
        client.communicate()
        freed = server.wait_for("vanished", 15)
        seen["client killed: freed after"] = freed and round(freed, 1)
        held &= freed is not None and freed < 12
    for name, what in {"TERM": signal.SIGTERM, "KILL": signal.SIGKILL}.items():
        with Serving(folder, "--grace", "2s") as server:
            client = server.client("send", "@", "-t", "8s")
            time.sleep(2.5)
            server.process.send_signal(what)
            code, lasted, _ = ended(client)
            seen[f"server {name}"] = f"rc {code} after {lasted:.1f} s"
            held &= code is not None and lasted < 20
    with Serving(folder) as server:
        client = server.client("send", "@", "-t", "7s")
        time.sleep(2)
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(3)
        server.process.send_signal(signal.SIGCONT)
        seen["server stopped 3 s"] = code = ended(client)[0]
        held &= code == 0
        for encrypt in ([], ["--encrypt"]):
            proxy = Proxy(server, rebind=2)
            client = server.client("send", f"127.0.0.1:{proxy.port}", "-t", "6s", *encrypt)
            seen["rebound" + "".join(encrypt)] = code = ended(client)[0]
            held &= code == 0
            proxy.end()
    return str(seen), held


@contextlib.contextmanager
def namespaces(names, commands):
    """Network namespaces of our own, gone afterwards. In commands `a:` is `ip -n a`."""
    if os.geteuid():
        raise Skipped("namespaces need root")
    tag = f"fp{os.getpid()}"
    try:
        for name in names:
            made = subprocess.run(["ip", "netns", "add", tag + name], capture_output=True)
            if made.returncode:
                raise Skipped("no namespace can be made")
            subprocess.run(["ip", "-n", tag + name, "link", "set", "lo", "up"], check=True)

        def do(command):
            where, _, rest = command.partition(": ")
            words = rest.replace("@", tag).split()
            if where.startswith("!"):
                words = ["ip", "netns", "exec", tag + where[1:], *words]
            else:
                words = ["ip", *(["-n", tag + where] if where else []), *words]
            subprocess.run(words, check=True, capture_output=True)

        for command in commands:
            do(command)
        yield do, lambda name: ("ip", "netns", "exec", tag + name)
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", tag + name], capture_output=True)


def routed(ends, mtu=None):
    """Hosts `ends` around the router `r`."""
    commands = []
    for i, host in enumerate(ends, 1):
        commands += [
            f": link add v{host} netns @{host} type veth peer name r{host} netns @r",
            f"{host}: addr add 10.97.{i}.1/24 dev v{host}",
            f"r: addr add 10.97.{i}.254/24 dev r{host}", f"{host}: link set v{host} up",
            f"r: link set r{host} up", f"{host}: route add default via 10.97.{i}.254",
        ]
    commands.append("!r: sysctl -qw net.ipv4.ip_forward=1")
    if mtu:
        commands.append(f"r: link set rb mtu {mtu}")
    return commands


@attack("t12 links", "an interface down for 2 s, an MTU of 1280 for 2 s", "MTU: test ends at once, rc 3")
def links(folder):
    with namespaces("arb", routed("ab")) as (do, within):
        rate = ("--max-rate", "20Mbit/s")
        with Serving(folder, *rate, host="10.97.2.1", prefix=within("b")) as server:
            seen, held = {}, True
            for name, off, on in (
                ("client down", ["a: link set va down"],
                 ["a: link set va up", "a: route add default via 10.97.1.254"]),
                ("server down", ["b: link set vb down"],
                 ["b: link set vb up", "b: route add default via 10.97.2.254"]),
                ("MTU", ["r: link set rb mtu 1280", "b: link set vb mtu 1280"],
                 ["r: link set rb mtu 1500", "b: link set vb mtu 1500"]),
            ):
                client = server.client("send", "@", "-t", "8s", prefix=within("a"))
                time.sleep(2)
                for command in off:
                    do(command)
                time.sleep(2)
                for command in on:
                    do(command)
                code, _, words = ended(client)
                seen[name] = code or words[-60:]
                held &= code == 0
            return str(seen), held


@attack("t18", "a hop of MTU 1280 behind a router", "stuck for 28 s")
def narrow(folder):
    files = folder / "files"
    files.mkdir()
    source = folder / "s"
    source.write_bytes(os.urandom(3_000_000))
    (files / "down").write_bytes(source.read_bytes())
    with namespaces("arb", routed("ab", 1280)) as (do, within):
        with Serving(folder, "--files", files, host="10.97.2.1", prefix=within("b")) as server:
            seen, held = {}, True
            for name, *arguments in (
                ("ping", "ping", "@", "-c", "2"), ("test", "send", "@", "-t", "3s"),
                ("put", "send", source, "@:up"), ("get", "send", "@:down", folder / "got"),
            ):
                code, lasted, words = ended(server.client(*arguments, prefix=within("a")), 40)
                seen[name] = f"rc {code}, {lasted:.1f} s{words[:200] if code else ''}"
                held &= code == 0
            held &= digest(files / "up") == digest(folder / "got") == digest(source)
            # The server's own interface: that is told, with what helps.
            do("b: link set vb mtu 1280")
            again = ("send", "@:down", folder / "got2")
            code, _, words = ended(server.client(*again, prefix=within("a")), 40)
            held &= code == 3 and "path.mtu=1280" in words
            code = ended(server.client(*again, "--set", "path.mtu=1280", prefix=within("a")), 40)[0]
            seen["get from a narrow interface, told and set"] = code
            return str(seen), held and code == 0


def checksum(packet):
    packet += b"\0" * (len(packet) % 2)
    total = sum(struct.unpack(f">{len(packet) // 2}H", packet))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def spray(client, server, port, mtu):
    """ICMP "fragmentation needed" for every port that a client may have; run as a program."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    sent = 0
    for own in range(32768, 61000):
        ip = struct.pack(
            ">BBHHHBBH4s4s", 0x45, 0, 1500, 1, 0x4000, 64, 17, 0, socket.inet_aton(client),
            socket.inet_aton(server),
        )
        ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
        message = struct.pack(">BBHHH", 3, 4, 0, 0, mtu) + ip
        message += struct.pack(">HHHH", own, port, 1480, 0)
        message = message[:2] + struct.pack(">H", checksum(message)) + message[4:]
        with contextlib.suppress(OSError):
            sock.sendto(message, (client, 0))
            sent += 1
    print(sent)


@attack("t19", "28,232 ICMP packets of a stranger beside three runs", "3 of 3 killed within 0.7 s")
def icmp(folder):
    files = folder / "files"
    files.mkdir()
    source = folder / "k"
    source.write_bytes(os.urandom(20_000_000))
    with namespaces("arbx", routed("abx")) as (_, within):
        options = ("--files", files, "--max-rate", "30Mbit/s")
        with Serving(folder, *options, host="10.97.2.1", prefix=within("b")) as server:
            seen, held = [], True
            for arguments in (
                ("send", "@", "-t", "8s"),
                ("send", "@", "-t", "8s", "--encrypt"),
                ("send", source, "@:i", "--encrypt"),
            ):
                client = server.client(*arguments, prefix=within("a"))
                time.sleep(3)
                program = "import sys; sys.path[:0] = sys.argv[1:3]; import paths; "
                program += f"paths.spray('10.97.1.1', '10.97.2.1', {server.port}, 600)"
                here = os.path.dirname(os.path.abspath(__file__))
                sprayed = subprocess.run(
                    [*within("x"), sys.executable, "-c", program, here, os.path.dirname(here)],
                    capture_output=True, text=True,
                )
                code, lasted, words = ended(client, 60)
                seen.append(f"{sprayed.stdout.strip() or sprayed.stderr[-200:]} packets: rc {code}")
                held &= code == 0
            held &= digest(files / "i") == digest(source)
            return "; ".join(seen), held
