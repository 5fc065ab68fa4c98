#!/usr/bin/env python3
"""Computes the test vectors of handshake, control and encryption anew from their fields.

    python3 contrib/python/vectors.py crates/net/tests/vectors/wire-v2.json

It uses nothing of the program: what it writes, the program's tests have to read and to write.
"""

import json
import sys

import noise
import wire

NONCE = bytes(range(16))
COOKIE = bytes(range(0x40, 0x64))
SESSION = 0x0123456789ABCDEF
KEY = "0123456789abcdef0123456789abcdef"
PRIVATE = bytes(range(0x20, 0x40))
CLIENT, SERVER = bytes(range(0x60, 0x80)), bytes(range(0x80, 0xA0))
DIGEST = bytes([9]) * 32
ASK = bytes([1, 0]) + (700).to_bytes(4, "big") + DIGEST


def handshakes():
    """The vectors of one handshake, and of one that the server refuses."""
    server = noise.public(PRIVATE)
    psk = wire.preshared(KEY)
    cookie = wire.header(wire.COOKIE) + NONCE + COOKIE + server
    begin = wire.header(wire.OPEN) + NONCE + COOKIE
    prologue = wire.prologue(NONCE, cookie, begin)

    def both():
        client = noise.Handshake(prologue, psk, server)
        first = client.write_first(ASK, CLIENT)
        there = noise.Handshake(prologue, psk, server, PRIVATE)
        assert there.read_first(first) == ASK
        return client, there, first

    client, there, first = both()
    second = there.write_second(SESSION.to_bytes(8, "big"), SERVER)
    assert client.read_second(second) == SESSION.to_bytes(8, "big")
    up, down = client.split()
    assert [up, down] == there.split()
    _, refusing, _ = both()
    refused = refusing.write_second(bytes([4, 0, 0, 0, 4]), SERVER)

    yield "hello", "1200 bytes: the nonce and zeros", wire.hello(NONCE), {"nonce": NONCE.hex()}
    yield "cookie", "the nonce comes back, with a cookie and the server's public key", cookie, {
        "nonce": NONCE.hex(), "cookie": COOKIE.hex(), "private": PRIVATE.hex(),
        "server": server.hex(),
    }
    yield "open", f"asks for a test over UDP with a request of 700 bytes; the key is `{KEY}`", (
        begin + first
    ), {
        "key": KEY, "meant": server.hex(), "chosen": CLIENT.hex(), "nonce": NONCE.hex(),
        **message(first),
        "cookie": COOKIE.hex(), "prologue": prologue.hex(), "test": 1, "options": 0,
        "length": 700, "digest": DIGEST.hex(),
    }
    yield "accept", "answers that OPEN", wire.header(wire.ACCEPT, SESSION) + NONCE + second, {
        "session": f"{SESSION:016x}", "nonce": NONCE.hex(), "chosen": SERVER.hex(), **message(second),
        "up": up.hex(), "down": down.hex(),
    }
    yield "refuse-clear", "authentication failed", (
        wire.header(wire.REFUSE) + NONCE + bytes([1, 0, 0, 0, 0])
    ), {"nonce": NONCE.hex(), "reason": 1, "number": 0}
    yield "refuse", "answers that OPEN: four tests are running already", (
        wire.header(wire.REFUSE) + NONCE + refused
    ), {
        "nonce": NONCE.hex(), "chosen": SERVER.hex(), **message(refused), "says": 4, "most": 4,
    }
    body = wire.ALIVE_BODY
    control = wire.sealed(wire.CONTROL, 0, 0, SESSION, wire.CONTROL_NUMBERS, up, body)
    yield "control", "the first message of that session from the client: still here", control, {
        "session": f"{SESSION:016x}", "number": str(wire.CONTROL_NUMBERS), "body": body.hex(),
        "ciphertext": control[20:-16].hex(), "tag": control[-16:].hex(),
    }


def message(noise_message):
    """The parts of a Noise message."""
    key, sealed, tag = noise_message[:32], noise_message[32:-16], noise_message[-16:]
    return {"ephemeral": key.hex(), "ciphertext": sealed.hex(), "tag": tag.hex()}


def main(path):
    with open(path) as file:
        all_ = json.load(file)
    all_["version"] = wire.VERSION
    made = {name: (about, data, fields) for name, about, data, fields in handshakes()}
    valid = []
    for vector in all_["valid"]:
        if vector["kind"] not in ("hello", "cookie", "open", "accept", "refuse", "control"):
            old = bytes.fromhex(vector["hex"])
            vector["hex"] = (bytes([wire.VERSION << 4 | old[0] & 15]) + old[1:]).hex()
            valid.append(vector)
    for name, (about, data, fields) in made.items():
        kind = name.split("-")[0]
        valid.append({"name": name, "kind": kind, "about": about, "hex": data.hex(),
                      "fields": fields})
    all_["valid"] = valid
    by_name = {vector["name"]: bytes.fromhex(vector["hex"]) for vector in valid}
    key = bytes.fromhex(all_["sealed_key"])
    for vector in all_["sealed"]:
        plain = by_name[vector["plain"]]
        first, flags, flow, session = wire.parse_header(plain)
        sealed = wire.sealed(first & 15, flags, flow, session, int(vector["number"]), key, plain[12:])
        vector["hex"] = sealed.hex()
    all_["invalid"] = [v for v in all_["invalid"] if v["name"] not in BENT]
    for vector in all_["invalid"]:
        data = bytearray.fromhex(vector["hex"])
        if data and not vector["name"].startswith("version-"):
            data[0] = wire.VERSION << 4 | data[0] & 15
        if vector["name"] == "version-2":
            vector["name"], vector["about"], data[0] = "version-1", "the version before", 0x18
        vector["hex"] = data.hex()
    for name, (about, error, bend) in BENT.items():
        all_["invalid"].append({"name": name, "about": about, "error": error,
                                "hex": bend(by_name).hex()})
    with open(path, "w") as file:
        file.write("{\n")
        parts = []
        for name, value in all_.items():
            if isinstance(value, list):
                rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in value)
                parts.append(f' "{name}": [\n{rows}\n ]')
            else:
                parts.append(f' "{name}": {json.dumps(value, ensure_ascii=False)}')
        file.write(",\n".join(parts) + "\n}\n")


def with_byte(data, at, value):
    return data[:at] + bytes([value]) + data[at + 1 :]


BENT = {
    "cookie-short": ("a byte is missing", "truncated", lambda v: v["cookie"][:-1]),
    "open-flag": ("a flag", "malformed", lambda v: with_byte(v["open"], 1, 1)),
    "open-long": ("a byte too many", "malformed", lambda v: v["open"] + b"\0"),
    "accept-session": (
        "an ACCEPT without a session", "malformed",
        lambda v: v["accept"][:4] + bytes(8) + v["accept"][12:],
    ),
    "control-clear": (
        "a control message that is not sealed", "malformed",
        lambda v: with_byte(v["control"], 1, 0),
    ),
    "refuse-reason": (
        "a reason that does not exist", "malformed",
        lambda v: with_byte(v["refuse-clear"], 28, 99),
    ),
    "refuse-busy-clear": (
        "a reason that is never given in clear", "malformed",
        lambda v: with_byte(v["refuse-clear"], 28, 4),
    ),
}

if __name__ == "__main__":
    main(sys.argv[1])
