"""A session with a server, from the HELLO to the last goodbye, written from docs/wire.md."""

import os
import select
import socket
import struct
import time

import blake3

import noise
import postcard
import wire
from postcard import Reader, number, text

PART, WINDOW = 1100, 16
ENDS = [
    "over", "stopped", "most bytes", "above the rate", "silent", "superseded", "shutting down",
    "failed",
]


# docs/wire.md, the reasons of a REFUSE.
REASONS = {
    1: "authentication failed: another key, only one side has one, or meant for another server",
    3: "a session was opened with this cookie before",
    4: "busy",
    5: "busy for this address",
    6: "a kind of test or an option that the server does not have",
    7: "the request is too long",
    8: "shutting down",
    10: "data is not to be encrypted, but the server runs encrypted tests only",
    11: "this host opens sessions faster than the server remembers their cookies",
    12: "the server speaks another version",
}


class Refused(Exception):
    """The server says no."""


class Gone(Exception):
    """Nothing is heard of the server."""


class Session:
    """`key`: the text of the shared key, or None; `server`: its identity, if it is known."""

    def __init__(self, address, request, key=None, server=None, encrypted=False):
        self.encrypted, self.request = encrypted, request
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.connect(address)
        self.socket.setblocking(False)
        self.psk, self.server = wire.preshared(key), server
        self.control_number, self.data_number = wire.CONTROL_NUMBERS, 0
        self.heard_control, self.heard_data = set(), set()
        self.data, self.pieces = [], {}
        self.met = {"challenges": 0, "probes": 0, "pieces": 0}
        self.questions, self.heard_at = 0, time.monotonic()
        self.open()

    # Datagrams.

    def receive(self, until):
        """The next datagram before `until`, or None."""
        while True:
            wait = until - time.monotonic()
            if wait <= 0 or not select.select([self.socket], [], [], wait)[0]:
                return None
            try:
                return self.socket.recv(65536)
            except (BlockingIOError, ConnectionRefusedError):
                continue

    def send(self, datagram):
        try:
            self.socket.send(datagram)
        except (BlockingIOError, ConnectionRefusedError):
            pass  # as good as lost

    # Handshake.

    def open(self):
        """HELLO to ACCEPT."""
        for _ in range(4):
            if self.try_to_open():
                return
        raise Refused("the handshake takes too long")

    def ask(self, datagram, read):
        """Sends until `read` has an answer."""
        wait = 0.25
        for _ in range(6):
            self.send(datagram)
            until = time.monotonic() + wait
            while (answer := self.receive(until)) is not None:
                found = read(answer)
                if found is not None:
                    return found
            wait = min(2 * wait, 2)
        raise Gone("no answer")

    def try_to_open(self):
        nonce = os.urandom(16)

        def read_cookie(datagram):
            good = datagram[:12] == wire.header(wire.COOKIE) and len(datagram) == 96
            if good and datagram[12:28] == nonce:
                known = self.server in (None, datagram[64:])
                return datagram if known else None
            return self.other_version(datagram, nonce)

        cookie = self.ask(wire.hello(nonce), read_cookie)
        begin = wire.header(wire.OPEN) + nonce + cookie[28:64]
        server = cookie[64:]
        handshake = noise.Handshake(wire.prologue(nonce, cookie, begin), self.psk, server)
        digest = blake3.blake3(self.request).digest()
        what = bytes([1, int(self.encrypted)]) + struct.pack(">I", len(self.request)) + digest
        first = handshake.write_first(what)

        def read_answer(datagram):
            if len(datagram) < 33 or datagram[12:28] != nonce or datagram[0] >> 4 != wire.VERSION:
                return None
            kind = datagram[0] & 15
            if kind == wire.REFUSE and len(datagram) == 33 and datagram[28] in (1, 2, 12):
                return datagram[28:33]
            if (kind, len(datagram)) not in ((wire.ACCEPT, 84), (wire.REFUSE, 81)):
                return None
            try:
                return handshake.read_second(datagram[28:])
            except noise.Damaged:
                return None

        answer = self.ask(begin + first, read_answer)
        if len(answer) == 5:
            reason, most = struct.unpack(">BI", answer)
            if reason == 2:
                return False
            words = REASONS.get(reason, "a reason that this client does not know")
            raise Refused(f"{words} (reason {reason}{f', {most}' if most else ''})")
        (self.id,) = struct.unpack(">Q", answer)
        self.up, self.down = handshake.split()
        self.server = server
        return True

    @staticmethod
    def other_version(datagram, nonce):
        """A REFUSE of another version is the same in its first 33 bytes."""
        if len(datagram) >= 33 and datagram[0] & 15 == wire.REFUSE and datagram[12:28] == nonce:
            if datagram[0] >> 4 != wire.VERSION or datagram[28] == 12:
                raise Refused(f"the server speaks version {datagram[0] >> 4}")
        return None

    # Control messages.

    def say(self, message):
        """Seals and sends a message."""
        self.send(wire.sealed(
            wire.CONTROL, 0, 0, self.id, self.control_number, self.up, message,
        ))
        self.control_number += 1

    def hear(self, until):
        """Takes in one datagram: a control message is returned, data is kept in `self.data`."""
        datagram = self.receive(until)
        if datagram is None or len(datagram) < 24:
            return None
        first, flags, flow, session = wire.parse_header(datagram)
        if first >> 4 != wire.VERSION or session != self.id:
            return None
        kind = first & 15
        if kind != wire.CONTROL and not self.encrypted:
            self.take_data(kind, flags, flow, datagram[12:])
            return None
        if not flags & wire.SEALED:
            return None
        try:
            n, body = wire.unsealed(datagram, self.down)
        except noise.Damaged:
            return None
        seen = self.heard_control if kind == wire.CONTROL else self.heard_data
        if n in seen or (kind == wire.CONTROL) != (n >= wire.CONTROL_NUMBERS):
            return None
        seen.add(n)
        self.heard_at = time.monotonic()
        if kind == wire.CONTROL:
            message = read_message(body)
            if message and message[0] == "challenge":
                self.met["challenges"] += 1
                self.say(number(7) + message[1])
                return None
            if message and message[0] == "probe":
                self.met["probes"] += 1
                self.say(number(9) + number(message[1]))
                return None
            return message
        self.take_data(kind, flags & 127, flow, body)
        return None

    def take_data(self, kind, flags, flow, body):
        """Keeps a datagram of the run; pieces once they are whole."""
        if kind != wire.PIECE:
            self.data.append((kind, flags, flow, body))
            return
        if len(body) < 8 or flags:
            return
        self.met["pieces"] += 1
        whole, index, count, length = struct.unpack(">IBBH", body[:8])
        part = -(-length // max(count, 1))
        begin, end = index * part, min((index + 1) * part, length)
        if not 2 <= count <= 64 or index >= count or end <= begin or len(body) != 8 + end - begin:
            return
        about = (whole, flow, count, length)
        known, parts = self.pieces.get(whole % 64, (None, {}))
        if known != about:
            parts = {}
        parts[index] = body[8:]
        self.pieces[whole % 64] = (about, parts)
        if len(parts) == count:
            del self.pieces[whole % 64]
            datagram = b"".join(parts[i] for i in range(count))
            first, flags, inner, session = wire.parse_header(datagram)
            kind = first & 15
            if first >> 4 == wire.VERSION and (inner, session) == (flow, self.id) and kind in range(8, 13):
                self.data.append((kind, flags, flow, datagram[12:]))

    def until(self, message, done, retry=0.2, patience=60, begin=None):
        """Says `message` until `done` finds what it waits for in an answer."""
        end, due = time.monotonic() + patience, 0
        while time.monotonic() < end:
            if time.monotonic() >= due:
                self.say(message)
                due = time.monotonic() + retry
                retry = min(2 * retry, 1)
            heard = self.hear(min(due, end))
            found = done(heard) if heard else None
            if found is not None:
                return found
        raise Gone(f"no answer to {message[:1].hex()}")

    def bring_request(self):
        """PART after PART; what the server grants."""
        parts = [self.request[i : i + PART] for i in range(0, len(self.request), PART)]
        messages = [number(0) + number(i) + text(part) for i, part in enumerate(parts)]
        sent, have = {}, set()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            now = time.monotonic()
            missing = [i for i in range(len(parts)) if i not in have] or [len(parts) - 1]
            for i in missing[:WINDOW]:
                if now >= sent.get(i, 0) + 0.4:
                    self.say(messages[i])
                    sent[i] = now
            heard = self.hear(now + 0.05)
            if heard and heard[0] == "have":
                have.add(heard[1])
            elif heard and heard[0] == "granted":
                return heard[1:]
            elif heard and heard[0] == "refused":
                raise Refused(heard[1])
        raise Gone("the request is not answered")

    def start(self):
        """The run begins."""
        self.until(number(1), lambda m: m if m[0] in ("alive", "ended") else None)
        self.next_alive = time.monotonic() + 0.5

    def alive(self):
        """To be called often while the run lasts; true if it is over at the server."""
        if time.monotonic() >= self.next_alive:
            self.say(number(2))
            # A server that is silent may not know where this side is.
            silent = time.monotonic() > self.heard_at + 0.7
            self.next_alive = time.monotonic() + (0.2 if silent else 0.5)

    def result(self):
        """STOP, and the result, whole and checked."""
        def ended(m):
            return m[1:] if m[0] == "ended" else None

        why, length, digest = self.until(number(3), ended)
        parts, count = {}, -(-length // PART)
        while len(parts) < count:
            missing = next(i for i in range(count) if i not in parts)
            many = min(32, count - missing)
            self.say(number(4) + number(missing) + number(many))
            until = time.monotonic() + 0.5
            while any(i not in parts for i in range(missing, missing + many)):
                if time.monotonic() > until:
                    break
                heard = self.hear(until)
                if heard and heard[0] == "part":
                    parts[heard[1]] = heard[2]
        whole = b"".join(parts[i] for i in range(count))
        if blake3.blake3(whole).digest() != digest:
            raise Gone("a damaged result")
        return ENDS[why], whole

    def question(self, question):
        """Asks until there is an answer other than BUSY."""
        self.questions += 1
        message = number(5) + number(self.questions) + question

        def answered(m):
            return m[2] if m[0] == "content" and m[1] == self.questions else None

        while (answer := self.until(message, answered))[0] == "busy":
            time.sleep(0.02)
        if answer[0] == "failed":
            raise Refused(answer[1])
        return answer

    def close(self):
        """Goodbye."""
        for _ in range(3):
            self.say(number(6))
            heard = self.hear(time.monotonic() + 0.2)
            if heard and heard[0] == "closed":
                break
        self.socket.close()

    # Data.

    def send_data(self, kind, flags, flow, body):
        """A datagram of the run."""
        if self.encrypted:
            datagram = wire.sealed(kind, flags, flow, self.id, self.data_number, self.up, body)
            self.data_number += 1
        else:
            datagram = wire.header(kind, self.id, flags, flow) + body
        self.send(datagram)


def read_message(body):
    """A server's message as a tuple, its name first."""
    r = Reader(body)
    which = r.number()
    if which == 0:
        return "have", r.number()
    if which == 1:
        return "granted", r.option(r.number), r.option(r.number), r.list(r.text)
    if which == 2:
        return "refused", r.text()
    if which == 3:
        return "alive", r.number(), r.number(), r.boolean()
    if which == 4:
        return "ended", r.number(), r.number(), r.take(32)
    if which == 5:
        return "part", r.number(), r.bytes()
    if which == 6:
        return "content", r.number(), read_answer(r)
    if which == 7:
        return ("closed",)
    if which == 8:
        return "challenge", r.take(8)
    if which == 9:
        return "probe", r.number()
    if which == 10:
        return "probed", r.number()
    return None


def read_answer(r):
    """An answer about a file."""
    which = r.number()
    if which == 1:
        return "failed", r.text()
    if which == 2:
        return "prepared", r.number(), r.number(), r.number(), r.number(), r.take(32)
    if which == 3:
        return "from", r.number()
    if which == 5:
        return "digest", r.take(32)
    if which == 8:
        return "items", r.list(lambda: read_item(r)), r.number(), r.number()
    if which == 9:
        return "found", r.list(lambda: (r.number(), read_found(r))), r.number()
    if which == 15:
        return "named", r.boolean(), r.list(lambda: (r.number(), r.text())), r.number()
    names = {12: "noted", 13: "ready"}
    if which in names:
        return (names[which],)
    return ({0: "busy", 4: "published", 7: "nonsense"}.get(which, "tally"),)


def read_item(r):
    """Name, size (None: a directory), last change, permission bits."""
    name = r.text()
    size, changed = r.option(lambda: (r.number(), r.number())) or (None, 0)
    return name, size, changed, r.number()


def read_found(r):
    """What the server has of an item."""
    which = r.number()
    if which == 0:
        spans = r.list(lambda: (r.number(), r.number()))
        return "part", spans, r.take(32)
    if which == 1:
        return "whole", r.take(32)
    return "refused", r.text()
