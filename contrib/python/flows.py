"""Flows of a run, written from docs/wire.md: just enough of a transport to be useful.

The sender has a window that grows by a segment per segment acknowledged, halves after a loss, and
resends what SACK blocks leave out. The receiver acknowledges every segment.
"""

import os
import struct
import time

import wire

HEADER = 24


def micros():
    """A time stamp."""
    return time.monotonic_ns() // 1000 & 0xFFFFFFFF


def millis():
    return time.monotonic_ns() // 1_000_000 & 0xFFFFFFFF


MASK = (1 << 64) - 1


def term(seq, nonce):
    """What a segment adds to the proof of an ACK."""
    z = (8 * seq + nonce + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return (z ^ z >> 31) & 0xFFFFFFFF


class Sender:
    """Flow `flow`: `payload(i)` is the payload of segment `i`, `count` how many there are."""

    def __init__(self, session, flow, payload, count, most=256):
        self.session, self.flow, self.payload, self.count = session, flow, payload, count
        self.una = self.next = 0
        self.window, self.threshold, self.most = 10.0, float(most), most
        self.peer_limit = 10
        self.sent, self.resent, self.sacked = {}, set(), set()
        self.open, self.syn_due, self.recover = False, 0.0, 0
        self.rto, self.srtt = 1.0, None
        self.retransmits = self.acks = self.unproven = 0
        # For each segment in flight its random bits, and their sum up to `una`.
        self.nonces, self.sum = {}, 0

    @property
    def done(self):
        return self.una >= self.count

    def transmit(self, seq, again):
        nonce = self.nonces.setdefault(seq, os.urandom(1)[0] & 7)
        flags = (2 if again else 0) | nonce << 4
        if seq + 1 == self.count:
            flags |= 8
        body = struct.pack(">QI", seq, micros()) + self.payload(seq)
        self.session.send_data(wire.DATA, flags, self.flow, body)
        self.sent[seq] = time.monotonic()
        self.retransmits += again

    def poll(self):
        """Sends what may be sent now."""
        now = time.monotonic()
        if not self.open:
            if now >= self.syn_due:
                again = 2 if self.syn_due else 0
                body = struct.pack(">QI", 0, micros())
                self.session.send_data(wire.DATA, 1 | again, self.flow, body)
                self.syn_due = now + 1
            return
        if self.una < self.next and now > self.sent[self.una] + self.rto:
            self.threshold = max(self.window / 2, 2)
            self.window, self.recover = 1.0, self.next
            self.resent.clear()
            self.rto = min(2 * self.rto, 8)
            self.resent.add(self.una)
            self.transmit(self.una, True)
        flight = self.next - self.una - len(self.sacked)
        limit = min(self.count, self.peer_limit)
        while self.next < limit and flight < min(self.window, self.most):
            self.transmit(self.next, False)
            self.next += 1
            flight += 1

    def take(self, flags, body):
        """An ACK has come."""
        if len(body) < ACK_FIXED:
            return
        cum, window, echo, hold, _, _, _, proof = struct.unpack(">QIIIIIII", body[:ACK_FIXED])
        blocks = [struct.unpack_from(">QQ", body, ACK_FIXED + 16 * i) for i in range(flags >> 4 & 7)]
        if flags & 2:
            blocks = blocks[1:]
        if cum > self.next or any(last > self.next for _, last in blocks) or cum < self.una:
            return
        told = [seq for first, last in blocks for seq in range(first, last)]
        told += range(self.una, cum)
        sum_ = self.sum + sum(term(seq, self.nonces[seq]) for seq in told)
        if sum_ & 0xFFFFFFFF != proof:
            self.unproven += 1
            return
        self.acks += 1
        self.open = True
        self.peer_limit = max(self.peer_limit, cum + (1 << 62 if window == 0xFFFFFFFF else window))
        rtt = max(((micros() - echo & 0xFFFFFFFF) - hold) / 1e6, 1e-6)
        if cum > self.una:
            self.srtt = rtt if self.srtt is None else 0.875 * self.srtt + 0.125 * rtt
            self.rto = max(0.2, 3 * self.srtt)
            for seq in range(self.una, cum):
                self.sum += term(seq, self.nonces.pop(seq))
                self.sent.pop(seq, None)
                self.sacked.discard(seq)
                self.resent.discard(seq)
            if cum >= self.recover:
                grown = cum - self.una
                slow = self.window < self.threshold
                self.window += grown if slow else grown / self.window
            self.una = cum
        highest = 0
        for first, last in blocks:
            highest = max(highest, last)
            self.sacked.update(s for s in range(max(first, self.una), last))
        # Three segments above arrived: it is lost.
        for seq in range(self.una, min(highest - 3, self.next)):
            if seq in self.sacked or seq in self.resent:
                continue
            if self.una >= self.recover:
                self.threshold = max(self.window / 2, 2)
                self.window, self.recover = self.threshold, self.next
            self.resent.add(seq)
            self.transmit(seq, True)


ACK_FIXED = 36


class Receiver:
    """Flow `flow`; `deliver(seq, payload)` gets every segment once."""

    def __init__(self, session, flow, deliver, window=1024):
        self.session, self.flow, self.deliver, self.window = session, flow, deliver, window
        # What came above `cum`, and its terms; the sum of all below.
        self.cum, self.above, self.sum = 0, {}, 0
        self.segments = self.duplicates = 0

    def take(self, flags, body):
        """A segment has come."""
        if len(body) < 12:
            return
        seq, stamp = struct.unpack(">QI", body[:12])
        if flags & 1:
            self.acknowledge(1, stamp, [])
            return
        if seq >= self.cum + self.window:
            return
        if seq < self.cum or seq in self.above:
            self.duplicates += 1
            self.acknowledge(2, stamp, [(seq, seq + 1)] + self.blocks(seq)[:3])
            return
        self.segments += 1
        self.deliver(seq, body[12:])
        self.above[seq] = term(seq, flags >> 4 & 7)
        while self.cum in self.above:
            self.sum += self.above.pop(self.cum)
            self.cum += 1
        self.acknowledge(0, stamp, self.blocks(seq)[:4])

    def blocks(self, newest):
        """What came out of order, the block of the newest segment first."""
        blocks = []
        for seq in sorted(self.above):
            if blocks and blocks[-1][1] == seq:
                blocks[-1] = (blocks[-1][0], seq + 1)
            else:
                blocks.append((seq, seq + 1))
        blocks.sort(key=lambda block: not block[0] <= newest < block[1])
        return blocks

    def acknowledge(self, flags, stamp, blocks):
        told = blocks[1:] if flags & 2 else blocks
        proof = self.sum + sum(self.above[s] for block in told for s in range(*block))
        body = struct.pack(
            ">QIIIIIII", self.cum, self.window, stamp, 0, millis(), 0, 0, proof & 0xFFFFFFFF
        )
        body += b"".join(struct.pack(">QQ", *block) for block in blocks)
        self.session.send_data(wire.ACK, flags | len(blocks) << 4, self.flow, body)
