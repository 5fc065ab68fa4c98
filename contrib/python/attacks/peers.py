"""Who has the key and does not keep to the rules."""

import collections
import os
import random
import re
import socket
import struct
import time

import wire
from harness import (
    ALIVE, CLOSE, FIRST, ITEMS, PREPARED, START, STOP, Refused, Serving, ack, attack, data, ended,
    fetch, get, ping, put, request, test,
)
from postcard import number


@attack("t3", "a client that vanishes, by stage", "10 s each; granted and not started: 119 s")
def hold(folder):
    (folder / "files").mkdir()
    (folder / "files/down.bin").write_bytes(os.urandom(100_000))
    with Serving(folder, "--files", folder / "files", "--max-tests-per-peer", "16") as server:
        base = server.stat()["fds"]
        stages = {
            "request": lambda c: c.open(b"r" * 40),
            "granted": lambda c: c.granted(test("up")),
            "running": lambda c: c.granted(test("down", 60), start=True),
            "file granted": lambda c: c.granted(get("down.bin")),
        }
        kept, names = [], [*stages, "ended"]
        for name, begin in stages.items():
            client = server.raw()
            begin(client)
            kept.append(client)
        client = server.raw()
        client.granted(ping(), start=True)
        client.wait("ended", say=STOP)
        kept.append(client)
        begin = time.monotonic()
        while time.monotonic() < begin + 30 and server.stat()["fds"] > base:
            time.sleep(0.1)
        lasted = time.monotonic() - begin
        time.sleep(0.2)
        found = re.findall(r"test (\d)\b[^\n]*(?:vanished|did not)", "\n".join(server.lines))
        freed = [names[int(i) - 1] for i in found]
        return f"{freed} freed within {lasted:.1f} s", lasted < 12


@attack("t4", "60 puts of a file that is there, each closed at once", "62 threads, 1.3 cores")
def work(folder):
    files = folder / "files"
    files.mkdir()
    with open(files / "big.bin", "wb") as file:
        file.truncate(20 << 30)
    with Serving(folder, "--files", files, prefix=("prlimit", "--nofile=1024")) as server:
        done = 0
        for _ in range(60):
            client = server.raw()
            for _ in range(200):
                try:
                    verdict = client.granted(put("big.bin", 20 << 30))
                    break
                except (Refused, TimeoutError):
                    time.sleep(0.05)
            else:
                verdict = None
            done += bool(verdict and verdict[0] == "granted")
            client.say(CLOSE)
            client.socket.close()
        time.sleep(1.5)
        before = server.stat()
        time.sleep(2)
        after = server.stat()
        cores = (after["cpu"] - before["cpu"]) / 2
        seen = f"{done} granted; then {after['Threads']} threads, {after['fds']} descriptors, "
        return seen + f"{cores:.2f} cores", after["Threads"] <= 4 and cores < 0.2


def carried():
    """Bytes that left through the loopback interface."""
    for line in open("/proc/net/dev"):
        if line.strip().startswith("lo:"):
            return int(line.split()[9])
    return 0


def blind(folder, rate, *options):
    """Acknowledges what was never read; the server's bytes, and those of the attacker."""
    with Serving(folder, *options) as server:
        client = server.raw()
        client.granted(test("down", 20), start=True)
        syn = client.wait("data", timeout=5, say=ALIVE)[1]
        echo = struct.unpack(">QI", syn[12:24])[1]
        answer, _ = ack(0, echo=echo)
        client.send_data(wire.ACK, 1, 0, answer)
        # From here on nothing is read.
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        begin, cum, due, sent = time.monotonic(), 0, 0, 0
        before = carried()
        while time.monotonic() < begin + 8:
            passed = time.monotonic() - begin
            cum = max(cum + 1, int(min(rate * passed, 10 * 2 ** min(passed / 0.02, 40))))
            for at in [*range(max(0, cum - 64), cum, 8), cum]:
                body, _ = ack(at, random.getrandbits(32), echo=echo)
                client.send_data(wire.ACK, 0, 0, body)
                sent += len(body) + 40
            if time.monotonic() > due:
                client.say(ALIVE)
                due = time.monotonic() + 0.4
            time.sleep(0.002)
        return carried() - before - sent, sent


@attack("t14b", "ACKs of what was never read, 8 s", "608 MB for 5.1 MB, 119 times")
def blind_acks(folder):
    got, sent = blind(folder, 20_000)
    return f"{max(got, 0) / 1e6:.2f} MB for {sent / 1e6:.1f} MB", got < sent / 10


@attack("t6", "ALIVE alone, nothing read", "nothing but SYNs")
def silent(folder):
    with Serving(folder) as server:
        client = server.raw()
        client.granted(test("down", 20), start=True)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        begin, before = time.monotonic(), carried()
        while time.monotonic() < begin + 8:
            client.say(ALIVE)
            time.sleep(0.4)
        bytes_ = carried() - before
        return f"{bytes_ / 1e3:.1f} kB in 8 s, both directions", bytes_ < 50_000


def unread(client, question, seconds):
    """Says `question`, again and again, and reads nothing: bytes of the server, and those sent."""
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    before, sent, until = carried(), 0, time.monotonic() + seconds
    while time.monotonic() < until:
        datagram = client.sealed(question)
        client.socket.send(datagram)
        sent += len(datagram) + 42
        time.sleep(0.0005)
    return carried() - before - sent, sent


@attack("own q", "questions whose answers nobody reads: a list, a result", "no lists")
def blind_questions(folder):
    files = folder / "files" / "d"
    files.mkdir(parents=True)
    for i in range(200):
        (files / ("x" * 150 + str(i))).touch()
    flows = [{"name": f"f{i}", "direction": "down", "bytes": 1} for i in range(250)]
    with Serving(folder, "--files", files.parent) as server:
        client = server.raw()
        client.granted(fetch(["d"]))
        client.ask(ITEMS + FIRST)
        of_list = unread(client, number(5) + number(7) + ITEMS + FIRST, 5)
        client.close()
        client = server.raw()
        client.granted(request(duration=5, flows=flows), start=True)
        client.wait("ended", say=STOP)
        of_result = unread(client, number(4) + number(0) + number(32), 2)
        client.close()
        seen = "list: {:,} bytes for {:,}; result: {:,} for {:,}".format(*of_list, *of_result)
        # The credit is 256 KiB to begin with; beyond it as much as comes, and headers.
        return seen, all(got < 300_000 + 1.5 * sent for got, sent in (of_list, of_result))


@attack("t6 opt", "ACKs of segments that were sent, before they were received", "1.53 Gbit/s")
def optimistic(folder):
    with Serving(folder) as server:
        client = server.raw()
        client.granted(test("down", 20), start=True)
        syn = client.wait("data", timeout=5, say=ALIVE)[1]
        echo = struct.unpack(">QI", syn[12:24])[1]
        answer, _ = ack(0, echo=echo)
        client.send_data(wire.ACK, 1, 0, answer)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.socket.setblocking(False)
        begin, highest, cum, due, before = time.monotonic(), 0, 0, 0, carried()
        while time.monotonic() < begin + 6:
            try:
                datagram = client.socket.recv(2048)
                if datagram[0] & 15 == wire.DATA:
                    highest = max(highest, struct.unpack(">Q", datagram[12:20])[0] + 1)
            except BlockingIOError:
                time.sleep(0.0002)
            if highest > cum:
                cum = highest
                client.send_data(wire.ACK, 0, 0, ack(cum, random.getrandbits(32), echo=echo)[0])
            if time.monotonic() > due:
                client.say(ALIVE)
                due = time.monotonic() + 0.4
        rate = (carried() - before) * 8 / 6 / 1e6
        return f"segment {highest}, {rate:.2f} Mbit/s", rate < 5


@attack("t13", "80 refused requests in a row, closed or not", "places held for 3 s")
def refused(folder):
    with Serving(folder, "--max-tests-per-peer", "16") as server:

        def once(close):
            client = server.raw()
            try:
                verdict = client.granted(get("nothing"))
            except Refused as no:
                return f"REFUSE {no.args[0]}"
            if close:
                client.say(CLOSE)
            client.socket.close()
            return verdict and verdict[0]

        closed = collections.Counter(once(True) for _ in range(40))
        time.sleep(4)
        left = collections.Counter(once(False) for _ in range(40))
        time.sleep(4)
        after = once(True)
        seen = f"closed {dict(closed)}, left {dict(left)}, 4 s later {after}"
        return seen, closed["refused"] == 40 and after == "refused"


def mutate(text):
    """A few changes of a JSON request."""
    text = bytearray(text)
    for _ in range(random.choice([1, 1, 1, 2, 3, 8])):
        at, chance = random.randrange(1, len(text)), random.random()
        if chance < 0.3:
            text[at] ^= 1 << random.randrange(8)
        elif chance < 0.6:
            digits = [i for i, byte in enumerate(text) if 48 <= byte < 58] or [at]
            at = random.choice(digits)
            text[at : at + 1] = random.choice(
                [b"0", b"-1", b"1e308", b"NaN", b"null", b"18446744073709551615", b"1e-9",
                 b"340282366920938463463374607431768211456", b"65535", b"52", b"[]", b"{}"]
            )
        elif chance < 0.8:
            del text[at]
        else:
            text[at:at] = text[at : at + random.randrange(1, 60)]
    return bytes(text)


def noise_of(client):
    """Datagrams that keep to the form and to nothing else."""
    big = [0, 1, 2, 5, 100, 2**16, 2**32 - 1, 2**48 - 1, 2**48, 2**61, 2**62 - 2, 2**62 - 1]
    for _ in range(60):
        chance, flow = random.random(), random.choice([0, 0, 0, 1, 0x8000, 0xFFFF])
        if chance < 0.35:
            size = random.choice([1, 1447, 1448, 1424, random.randrange(1, 1460)])
            body = data(random.choice(big), b"x" * size, random.getrandbits(32))
            client.send_data(wire.DATA, random.randrange(8) << 4, flow, body)
        elif chance < 0.45:
            client.send_data(wire.DATA, random.choice([1, 3]), flow, data(0, b""))
        elif chance < 0.8:
            cum, blocks = random.choice(big), []
            for _ in range(random.randrange(5)):
                first = min(2**62 - 1, cum + 1 + random.choice([0, 1, 1000, 2**20, 2**40]))
                blocks.append((first, min(2**62, first + random.choice([1, 1000, 2**30, 2**50]))))
            body, flags = ack(
                cum, random.getrandbits(32), random.choice([0, 1, 2**32 - 1]),
                random.getrandbits(32), blocks,
            )
            client.send_data(wire.ACK, flags, flow, body)
        elif chance < 0.9:
            body = struct.pack(">QI", random.choice(big), 0) + bytes(random.choice([0, 12, 1400]))
            client.send_data(random.choice([10, 11, 12]), 0, flow, body)
        else:
            kind, flags = random.randrange(16), random.randrange(256)
            client.send_data(kind, flags, flow, os.urandom(random.randrange(200)))


@attack("t8", "mutated requests and session datagrams, 40 s", "447 granted, 0 panics, 31 MB")
def fuzz(folder):
    random.seed(8)
    files = folder / "files"
    files.mkdir()
    (files / "down.bin").write_bytes(os.urandom(100_000))
    options = ("--files", files, "--max-tests", 64, "--max-tests-per-peer", 64)
    with Serving(folder, *options, "--max-duration", "2s") as server:
        seeds = [
            test("up", 1), test("down", 1), ping(1), put("a", 1000), get("down.bin"),
            test("down", 1, stack="highspeed+limited(max_ssthresh=100)", window=10),
        ]
        before = server.stat()["VmRSS"]
        begin, count, granted, datagrams = time.monotonic(), 0, 0, 0
        while time.monotonic() < begin + 40 and server.is_alive():
            asked = random.choice(seeds)
            asked = mutate(asked) if random.random() < 0.8 else asked
            client = server.raw(timeout=1)
            try:
                verdict = client.granted(asked)
            except (Refused, OSError):
                continue
            count += 1
            if verdict and verdict[0] == "granted":
                granted += 1
                for n in range(3):
                    question = random.choice([
                        PREPARED, number(1) + number(random.getrandbits(random.choice([1, 20, 64]))),
                        number(2) + number(random.getrandbits(64)) + os.urandom(32),
                        number(3) + os.urandom(32), number(4) + number(random.getrandbits(32)),
                        os.urandom(random.randrange(40)),
                    ])
                    client.say(number(5) + number(n) + question)
                client.say(START)
                for _ in range(random.choice([1, 3, 10])):
                    try:
                        noise_of(client)
                        datagrams += 60
                    except OSError:
                        break
            try:
                client.say(random.choice([CLOSE, STOP, os.urandom(20)]))
            except OSError:
                pass
            client.socket.close()
        panics, stat = server.panics(), server.stat()
        seen = f"{count} requests, {granted} granted, {datagrams} datagrams; {len(panics)} panics, "
        seen += f"{before // 1000} to {stat['VmHWM'] // 1000} MB {panics[:2]}"
        return seen, server.is_alive() and not panics and stat["VmHWM"] < before + 100_000


@attack("t15", "20 and 40 reverse tests at a time", "15 of 20 served; of 40 with 64 places 12")
def load(folder):
    seen, held = [], True
    for count, options in (
        (6, ()), (20, ("--max-tests-per-peer", 64)),
        (40, ("--max-tests-per-peer", 64, "--max-tests", 64, "--max-rate", "2Mbit/s")),
    ):
        with Serving(folder, *options) as server:
            before = server.stat()["VmRSS"]
            clients = [server.client("send", "@", "-R", "-t", "4s") for _ in range(count)]
            codes, words = collections.Counter(), collections.Counter()
            for client in clients:
                code, _, last = ended(client, 90)
                codes[code] += 1
                told = ("busy", "memory", "at a time", "no answer")
                reason = next((word for word in told if word in last), last[:60])
                words[reason] += code != 0
            each = (server.stat()["VmHWM"] - before) / count / 1000
            seen.append(f"{count}: {codes[0]} served, {dict(+words)}, {each:.1f} MB each")
            # A busy machine starts them one after the other, and some are not answered in time.
            held &= not words["memory"] and codes[0] > 0
    return "; ".join(seen), held


@attack("t15 idle", "600 sessions that run and say nothing but ALIVE", "0.18 MB each, 4 descriptors")
def idle(folder):
    options = ("--max-tests", 1000, "--max-tests-per-peer", 1000, "--max-memory", "10GB")
    with Serving(folder, *options, prefix=("prlimit", "--nofile=8192")) as server:
        before, clients = server.stat(), []
        due = time.monotonic() + 2
        for _ in range(500):
            client = server.raw(timeout=5)
            verdict = client.granted(test("down", 100), start=True)
            if not verdict or verdict[0] != "granted":
                break
            clients.append(client)
            if time.monotonic() > due:
                due = time.monotonic() + 2
                for one in clients:
                    one.say(ALIVE)
        after = server.stat()
        count = max(len(clients), 1)
        each = (after["VmRSS"] - before["VmRSS"]) / count / 1000
        seen = f"{len(clients)} sessions: {each:.2f} MB, "
        seen += f"{(after['fds'] - before['fds']) / count:.1f} descriptors each"
        # 512 openings in 20 s are let through for one address.
        return seen, len(clients) == 500 and each < 1


# Root could raise the limit again.
FEW = ("setpriv", "--bounding-set", "-sys_resource", "prlimit", "--nofile=64:64")


@attack("t4 fds", "40 sessions where there are 64 descriptors", "ACCEPT, then silence")
def descriptors(folder):
    options = ("--max-tests", 100, "--max-tests-per-peer", 100)
    with Serving(folder, *options, prefix=FEW) as server:
        seen, kept = collections.Counter(), []
        for _ in range(40):
            client = server.raw()
            try:
                verdict = client.granted(test("down", 100), start=True)
                seen[verdict[0] if verdict else "silence"] += 1
            except Refused as no:
                seen[f"REFUSE {no.args[0]}"] += 1
            except TimeoutError:
                seen["silence"] += 1
            kept.append(client)
            for one in kept:
                if one.begun and hasattr(one, "up"):
                    one.say(ALIVE)
        held = seen["silence"] == 0 and seen["granted"] > 3 and seen["REFUSE 4"] > 3
        return str(dict(seen)), held and not server.panics()
