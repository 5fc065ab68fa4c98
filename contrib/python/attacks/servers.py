"""Servers that have the key and answer beside the point, against the client."""

import collections
import concurrent.futures
import os
import random

import blake3

from harness import Fake, Serving, attack
from postcard import Reader, number, text

GRANT = number(1) + b"\0\0\0"
# Deadlines of a client, by stage, are 15 and 60 s.
PATIENCE = 75


def have(fake, at):
    fake.say(number(0) + number(at))


def alive(fake, _):
    fake.say(number(3) + number(0) + number(0) + b"\0")


def closed(fake, _):
    fake.say(number(7))


def behaviour(stages):
    """What a server says at each message; it grants unless told otherwise."""

    def behave(fake, message, body):
        if message == "part" and "part" not in stages:
            have(fake, body)
            if fake.request is not None:
                fake.say(GRANT)
        elif message in stages:
            stages[message](fake, body)

    return behave


def ended(result, length=None, digest=None):
    def say(fake, _):
        size = len(result) if length is None else length
        fake.say(number(4) + number(0) + number(size) + (digest or blake3.blake3(result).digest()))

    return say


def parts(result):
    def say(fake, body):
        reader = Reader(body)
        first, many = reader.number(), reader.number()
        for at in range(first, first + many):
            part = result[at * 1100 : (at + 1) * 1100]
            if part:
                fake.say(number(5) + number(at) + text(part))

    return say


def full(result, **about):
    """A run that ends with this result."""
    return {
        "start": alive, "alive": alive, "stop": ended(result, **about), "ask": parts(result),
        "close": closed,
    }


def granting(message):
    def say(fake, at):
        have(fake, at)
        if fake.request is not None:
            fake.say(message)

    return {"part": say}


def answering(answer):
    """Answers every question about a file alike."""

    def say(fake, body):
        fake.say(number(6) + number(Reader(body).number()) + answer)

    return {"content": say}


PING = ("ping", "@", "-c", "3", "-i", "50ms")
PUT = ("send", "{source}", "@:x")
GET = ("send", "@:x", "{target}")
RUN = ("send", "@", "-t", "2s")
ESCAPES = "\x1b[2J\x07evil \u202e text".encode()
NOTE = text(b"\x1b]0;x\x07note")

CASES = {
    "never grants": ({"part": have}, PING),
    "refuses with escapes": (granting(number(2) + text(ESCAPES * 30)), PING),
    "notes with escapes": (
        {**granting(number(1) + b"\0\0" + number(3) + NOTE * 3), "start": alive, "alive": alive},
        PING,
    ),
    "2^64-1 notes": (granting(number(1) + b"\0\0" + number(2**64 - 1)), PING),
    "grants nothing": (granting(number(1) + b"\1\0\1\0\0") | full(b""), PING),
    "grants a rate of 0": (granting(number(1) + b"\1\0\0\0"), RUN),
    "ignores START": ({}, PING),
    "answers START with HAVE": ({"start": lambda fake, _: have(fake, 0)}, PING),
    "ALIVE in answer to STOP": ({"start": alive, "alive": alive, "stop": alive}, PING),
    "a result of 2^32-1 bytes": (full(b"", length=2**32 - 1), PING),
    "256 MiB announced, no parts": (full(b"", length=256 << 20), PING),
    "ASK answered with ALIVE": (full(b"", length=256 << 20) | {"ask": alive}, PING),
    "an empty result": (full(b""), PING),
    "a random result": (full(os.urandom(3000)), PING),
    "a wrong digest": (full(b"x" * 3000, digest=bytes(32)), PING),
    "put: BUSY for ever": (answering(number(0)), PUT),
    "put: another answer": (answering(number(3) + number(12345)), PUT),
    "get: BUSY for ever": (answering(number(0)), GET),
    "get: nonsense": (
        answering(number(2) + number(2**64 - 1) + number(1) + number(0) + number(2**63) + bytes(32)),
        GET,
    ),
}


@attack("evil", "19 servers that answer beside the point", "6 hang as long as one waits")
def beside_the_point(folder):
    with Serving(folder) as server:
        source = folder / "source"
        source.write_bytes(os.urandom(200_000))

        def one(case):
            name, (stages, arguments) = case
            target = folder / f"got-{len(name)}"
            arguments = [a.format(source=source, target=target) for a in arguments]
            return name, Fake(server, behaviour(stages)).against(
                server, *arguments, seconds=PATIENCE
            )

        with concurrent.futures.ThreadPoolExecutor(7) as pool:
            seen = dict(pool.map(one, CASES.items()))
    # A server may read files for an hour before it answers: BUSY in content/copy.rs.
    waits = [name for name, found in seen.items() if found[0] is None and "BUSY" in name]
    hang = [name for name, found in seen.items() if found[0] is None and name not in waits]
    panics = [name for name, found in seen.items() if "panicked" in found[2]]
    odd = [name for name, found in seen.items() if any(c in found[2] for c in "\x07\u202e")]
    # The program's own colours apart: no terminal is there, so it writes none.
    odd += [name for name, found in seen.items() if "\x1b" in found[2]]
    longest = max(found[1] for found in seen.values())
    most = max(found[3] for found in seen.values())
    text_ = f"{len(seen)} cases: {len(hang)} hang {hang}, {len(waits)} wait for an hour {waits}, {len(panics)} panics, escapes passed on by "
    text_ += f"{odd}; the longest {longest:.0f} s, {most} MB at most"
    return text_, not hang and not panics and not odd and most < 64


@attack("evil2", "60 results of a ping, mutated", "0 panics")
def results(folder):
    random.seed(3)
    # The result of a real run, as a server makes it, is what a Fake cannot make: random bytes with
    # a likely beginning stand for it. fuzz/fuzz_targets/control.rs mutates real ones.
    with Serving(folder) as server:
        seen = collections.Counter()

        def one(seed):
            dice = random.Random(seed)
            result = bytes(dice.choice([0, 1, 2, 127, 128, 255, dice.randrange(256)])
                           for _ in range(dice.randrange(1, 400)))
            return Fake(server, behaviour(full(result))).against(server, *PING, seconds=PATIENCE)

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            for code, _, words, _ in pool.map(one, range(60)):
                seen["panic" if "panicked" in words else code] += 1
    return str(dict(seen)), set(seen) <= {0, 3}
