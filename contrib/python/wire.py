"""Datagrams, written from docs/wire.md."""

import struct

import blake3

import noise

VERSION = 2
HELLO, COOKIE, OPEN, ACCEPT, REFUSE, CONTROL = range(6)
DATA, ACK, DATAGRAM, PING, PONG, PIECE = range(8, 14)
SEALED = 128
CONTROL_NUMBERS = 1 << 63
ALIVE_BODY = bytes([2])


def header(kind, session=0, flags=0, flow=0):
    """The twelve bytes that every datagram begins with."""
    return struct.pack(">BBHQ", VERSION << 4 | kind, flags, flow, session)


def parse_header(datagram):
    """First byte, flags, flow, session."""
    return struct.unpack(">BBHQ", datagram[:12])


def hello(nonce):
    """1200 bytes, most of them zeros."""
    return (header(HELLO) + nonce).ljust(1200, b"\0")


def preshared(key):
    """The pre-shared key of a line of text; without one, zeros."""
    if key is None:
        return bytes(32)
    context = "fullpipe 2026 shared key v1"
    return blake3.blake3(key.strip().encode(), derive_key_context=context).digest()


def prologue(nonce, cookie, begin):
    """What both sides have seen in clear before the first Noise message."""
    return b"fullpipe" + hello(nonce)[:28] + cookie + begin


def sealed(kind, flags, flow, session, number, key, body):
    """A datagram whose body is encrypted."""
    front = header(kind, session, flags | SEALED, flow)
    return front + struct.pack(">Q", number) + noise.seal(key, number, front, body)


def unsealed(datagram, key):
    """Number and body of one."""
    front = datagram[:12]
    (number,) = struct.unpack(">Q", datagram[12:20])
    return number, noise.unseal(key, number, front, datagram[20:])
