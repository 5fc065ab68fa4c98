"""What the attacks have in common: a server process, a client without manners, a server without
manners, and the list of attacks. Written from docs/wire.md, as the client beside this folder."""

import functools
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

import blake3

import noise
import wire
from postcard import Reader, number, text
from session import read_message

PROGRAM = os.environ.get("FULLPIPE", "fullpipe")
PART = 1100
START, ALIVE, STOP, CLOSE = number(1), number(2), number(3), number(6)

ATTACKS = []


class Skipped(Exception):
    """What this machine lacks."""


def attack(script, what, format_1):
    """Adds an attack: `script` names it, `format_1` is what it did to wire format 1. The function
    gets a folder of its own and returns what it saw and whether the defence held."""

    def add(function):
        @functools.wraps(function)
        def run():
            with tempfile.TemporaryDirectory(prefix="fullpipe-attack-") as folder:
                return function(pathlib.Path(folder))

        ATTACKS.append((script, what, format_1, run))
        return run

    return add


# The server.


class Serving:
    """`fullpipe serve` with a key, in `folder`."""

    def __init__(self, folder, *options, host="127.0.0.1", port=0, prefix=()):
        self.folder, self.host = pathlib.Path(folder), host
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        self.environment = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home)}
        self.key = self.folder / "key"
        if not self.key.exists():
            subprocess.run(
                [PROGRAM, "serve", "--new-key", str(self.key)],
                check=True, stderr=subprocess.DEVNULL, env=self.environment,
            )
        lines = self.key.read_text().split("\n")
        self.secret, self.identity = lines[0].strip(), bytes.fromhex(lines[1].split()[1])
        self.lines, self.ready, self.port = [], threading.Event(), None
        self.process = subprocess.Popen(
            [*prefix, PROGRAM, "serve", "--listen", f"{host}:{port}", "--key", str(self.key),
             *map(str, options)],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, errors="replace",
            env=self.environment,
        )
        threading.Thread(target=self._read, daemon=True).start()
        if not self.ready.wait(20):
            raise SystemExit("the server: " + "\n".join(self.lines))

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            found = re.search(r"listening on UDP (\S+):(\d+)", line)
            if found:
                self.port = int(found[2])
                self.ready.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    @property
    def address(self):
        return self.host, self.port

    @property
    def at(self):
        return f"{self.host}:{self.port}"

    def raw(self, **options):
        """A client without manners."""
        return Raw(self.address, self.secret, **options)

    def client(self, *arguments, prefix=()):
        """`fullpipe ARGUMENTS`, where `@` is the server's address."""
        arguments = [a.replace("@", self.at) for a in map(str, arguments)]
        return subprocess.Popen(
            [*prefix, PROGRAM, *arguments, "--key", str(self.key), "-q"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
            env=self.environment,
        )

    def stat(self):
        """Memory in kB, threads, descriptors, seconds of processor."""
        pid, found = self.process.pid, {}
        for line in open(f"/proc/{pid}/status"):
            name, _, value = line.partition(":")
            if name in ("VmRSS", "VmHWM", "Threads"):
                found[name] = int(value.split()[0])
        found["fds"] = len(os.listdir(f"/proc/{pid}/fd"))
        times = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        found["cpu"] = (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
        return found

    def is_alive(self):
        return self.process.poll() is None

    def panics(self):
        return [line for line in self.lines if "panicked" in line]

    def wait_for(self, word, seconds):
        """Seconds until a line has `word`, or None."""
        begin, seen = time.monotonic(), len(self.lines)
        while time.monotonic() < begin + seconds:
            if any(word in line for line in self.lines[seen:]):
                return time.monotonic() - begin
            time.sleep(0.05)
        return None

    def end(self):
        if self.is_alive():
            self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def ended(process, seconds=40):
    """Exit code, seconds and last words of a client; a code of None: it hangs."""
    begin = time.monotonic()
    try:
        words = process.communicate(timeout=seconds)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None, time.monotonic() - begin, ""
    return process.returncode, time.monotonic() - begin, words.strip()


# Requests.


def request(**fields):
    """A JSON request."""
    return json.dumps({"form": 1, **fields}).encode()


def test(direction="up", seconds=10, encrypted=False, **fields):
    flow = {"name": "main", "direction": direction, **fields}
    return request(duration=seconds, flows=[flow], encrypted=encrypted)


def ping(seconds=10):
    return request(duration=seconds, pings=[{"name": "ping", "every": 0.05}])


def put(name, size, **fields):
    flow = {"name": "main", "direction": "up", "bytes": min(max(size, 1), 1 << 60)}
    about = {"name": name, "size": size, "changed": 1, **fields}
    return request(duration=600, until_complete=True, flows=[flow], put=about)


def get(name):
    flow = {"name": "main", "direction": "down"}
    return request(duration=600, until_complete=True, flows=[flow], get={"name": name})


def fetch(names):
    flow = {"name": "main", "direction": "down"}
    return request(
        duration=600, until_complete=True, flows=[flow], fetch={"names": names}
    )


PREPARED, ITEMS, FIRST = number(0), number(5), number(0)


# A client without manners.


class Refused(Exception):
    """Reason and number."""


class Raw:
    """Sends what it is told to, checks what it gets."""

    def __init__(self, to, secret=None, bind=None, timeout=3):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        if bind:
            self.socket.bind(bind)
        self.socket.connect(to)
        self.socket.settimeout(timeout)
        self.timeout = timeout
        self.psk = wire.preshared(secret)
        self.control, self.data_number = wire.CONTROL_NUMBERS, 0
        self.nonce = self.begun = None

    def cookie(self, nonce=None):
        """The COOKIE that answers a HELLO."""
        self.nonce = nonce or os.urandom(16)
        self.socket.send(wire.hello(self.nonce))
        while True:
            datagram = self.socket.recv(2048)
            if datagram[0] & 15 == wire.COOKIE and datagram[12:28] == self.nonce:
                return datagram

    def opening(self, asked, cookie, options=0, kind=1, length=None, digest=None):
        """An OPEN."""
        begin = wire.header(wire.OPEN) + self.nonce + cookie[28:64]
        self.handshake = noise.Handshake(
            wire.prologue(self.nonce, cookie, begin), self.psk, cookie[64:]
        )
        length = len(asked) if length is None else length
        what = bytes([kind, options]) + struct.pack(">I", length)
        what += digest or blake3.blake3(asked).digest()
        return begin + self.handshake.write_first(what)

    def open(self, asked, cookie=None, **options):
        """To the ACCEPT."""
        self.request = asked
        cookie = cookie or self.cookie()
        self.begun = self.opening(asked, cookie, **options)
        self.encrypted = bool(options.get("options", 0) & 1)
        self.socket.send(self.begun)
        while True:
            datagram = self.socket.recv(2048)
            kind = datagram[0] & 15
            if datagram[12:28] != self.nonce:
                continue
            if kind == wire.REFUSE:
                if len(datagram) == 33:
                    raise Refused(*struct.unpack(">BI", datagram[28:33]))
                raise Refused(*struct.unpack(">BI", self.handshake.read_second(datagram[28:])))
            if kind == wire.ACCEPT:
                (self.id,) = struct.unpack(">Q", self.handshake.read_second(datagram[28:]))
                self.up, self.down = self.handshake.split()
                return self

    def sealed(self, message, at=None, key=None):
        """A CONTROL datagram."""
        if at is None:
            at, self.control = self.control, self.control + 1
        return wire.sealed(wire.CONTROL, 0, 0, self.id, at, key or self.up, message)

    def say(self, message):
        self.socket.send(self.sealed(message))

    def send_data(self, kind, flags, flow, body):
        """As a session of the client: in clear, or sealed."""
        if self.encrypted:
            self.socket.send(
                wire.sealed(kind, flags, flow, self.id, self.data_number, self.up, body)
            )
            self.data_number += 1
        else:
            self.socket.send(wire.header(kind, self.id, flags, flow) + body)

    def hear(self, timeout=2):
        """A message, ("data", datagram), or None."""
        self.socket.settimeout(max(timeout, 0.001))
        try:
            datagram = self.socket.recv(65535)
        except (TimeoutError, ConnectionRefusedError):
            return None
        if datagram[0] & 15 == wire.CONTROL:
            try:
                return read_message(wire.unsealed(datagram, self.down)[1])
            except noise.Damaged:
                return None
        return "data", datagram

    def wait(self, *kinds, timeout=3, say=None):
        """The next message of these kinds."""
        until, due = time.monotonic() + timeout, 0
        while time.monotonic() < until:
            if say and time.monotonic() >= due:
                self.say(say)
                due = time.monotonic() + 0.2
            heard = self.hear(0.1 if say else until - time.monotonic())
            if heard and heard[0] in kinds:
                return heard
        return None

    def bring(self, timeout=5):
        """The request; GRANTED or REFUSED."""
        parts = [self.request[i : i + PART] for i in range(0, len(self.request), PART)]
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            for i, part in enumerate(parts):
                self.say(number(0) + number(i) + text(part))
            pause = time.monotonic() + 0.3
            while time.monotonic() < pause:
                heard = self.hear(0.1)
                if heard and heard[0] in ("granted", "refused"):
                    return heard
        return None

    def ask(self, question, n=1, seconds=5):
        """An answer about a file other than BUSY."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            heard = self.wait("content", timeout=1, say=number(5) + number(n) + question)
            if heard and heard[1] == n and heard[2][0] != "busy":
                return heard[2]
            time.sleep(0.03)
        return None

    def granted(self, asked, start=False, **options):
        """A session up to GRANTED, or the run."""
        self.open(asked, **options)
        verdict = self.bring()
        if start and verdict and verdict[0] == "granted":
            self.wait("alive", "ended", say=START)
        return verdict

    def close(self):
        try:
            self.say(CLOSE)
            self.hear(0.3)
        except OSError:
            pass
        self.socket.close()


def data(seq, payload, stamp=0):
    """Body of a DATA datagram."""
    return struct.pack(">QI", seq, stamp & 0xFFFFFFFF) + payload


def ack(cum, proof=0, window=0xFFFFFFFF, echo=0, blocks=()):
    """Body of an ACK, and its flags."""
    body = struct.pack(">QIIIIIII", cum, window, echo, 0, 0, 0, 0, proof & 0xFFFFFFFF)
    return body + b"".join(struct.pack(">QQ", *block) for block in blocks), len(blocks) << 4


# A server without manners.


class Fake:
    """Speaks the handshake of a server; `behave(self, message, body)` does the rest. It holds the
    key of `serving`, and answers in its place."""

    def __init__(self, serving, behave):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.psk, self.behave = wire.preshared(serving.secret), behave
        self.private = os.urandom(32)
        self.public = noise.public(self.private)
        self.begun, self.id, self.peer, self.request = None, None, None, None
        self.stop = False

    def say(self, message):
        sealed = wire.sealed(wire.CONTROL, 0, 0, self.id, self.at, self.down, message)
        self.at += 1
        try:
            self.socket.sendto(sealed, self.peer)
        except OSError:
            pass

    def open(self, datagram, to):
        """Answers an OPEN; the same one is answered the same."""
        if datagram != self.begun:
            cookie = wire.header(wire.COOKIE) + datagram[12:28] + b"C" * 36 + self.public
            prologue = wire.prologue(datagram[12:28], cookie, datagram[:64])
            handshake = noise.Handshake(prologue, self.psk, self.public, self.private)
            what = handshake.read_first(datagram[64:])
            self.begun, self.peer, self.parts, self.request = datagram, to, {}, None
            self.at, self.id = wire.CONTROL_NUMBERS, int.from_bytes(os.urandom(8), "big") | 1
            (self.length,) = struct.unpack(">I", what[2:6])
            second = handshake.write_second(struct.pack(">Q", self.id))
            self.up, self.down = handshake.split()
            self.accept = wire.header(wire.ACCEPT, self.id) + datagram[12:28] + second
        self.socket.sendto(self.accept, to)

    def take(self, datagram):
        """A CONTROL message."""
        _, body = wire.unsealed(datagram, self.up)
        reader = Reader(body)
        kind = reader.number()
        if kind == 0:
            at = reader.number()
            self.parts[at] = reader.bytes()
            if sum(map(len, self.parts.values())) == self.length:
                self.request = b"".join(self.parts[i] for i in sorted(self.parts))
            self.behave(self, "part", at)
            return
        names = {1: "start", 2: "alive", 3: "stop", 4: "ask", 5: "content", 6: "close"}
        if kind in names:
            self.behave(self, names[kind], body[reader.at :])

    def loop(self, seconds):
        until = time.monotonic() + seconds
        self.socket.settimeout(0.1)
        while time.monotonic() < until and not self.stop:
            try:
                datagram, to = self.socket.recvfrom(65535)
            except TimeoutError:
                continue
            kind = datagram[0] & 15
            try:
                if kind == wire.HELLO:
                    cookie = wire.header(wire.COOKIE) + datagram[12:28] + b"C" * 36
                    self.socket.sendto(cookie + self.public, to)
                elif kind == wire.OPEN:
                    self.open(datagram, to)
                elif kind == wire.CONTROL and self.id:
                    self.take(datagram)
            except noise.Damaged:
                pass

    def against(self, serving, *arguments, seconds=75):
        """A client against this server: how it ends, how long it took, most memory in MB."""
        home = pathlib.Path(tempfile.mkdtemp(dir=serving.folder))
        key = home / "key"
        key.write_text(f"{serving.secret}\nserver {self.public.hex()}\n")
        key.chmod(0o600)
        arguments = [a.replace("@", f"127.0.0.1:{self.port}") for a in map(str, arguments)]
        process = subprocess.Popen(
            [PROGRAM, *arguments, "--key", str(key)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
            env=serving.environment,
        )
        thread = threading.Thread(target=self.loop, args=(seconds + 5,), daemon=True)
        thread.start()
        begin, most = time.monotonic(), 0
        while process.poll() is None and time.monotonic() < begin + seconds:
            time.sleep(0.05)
            most = max(most, resident(process.pid))
        code, lasted = process.poll(), time.monotonic() - begin
        if code is None:
            process.send_signal(signal.SIGKILL)
        words = process.communicate()[1]
        self.stop = True
        thread.join()
        return code, lasted, words, most


def resident(pid):
    """Most MB that a process ever had."""
    try:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("VmHWM"):
                return int(line.split()[1]) // 1024
    except OSError:
        pass
    return 0
