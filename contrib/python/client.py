#!/usr/bin/env python3
"""An independent client of `fullpipe serve`, written from docs/wire.md alone.

    client.py HOST[:PORT] test [--reverse] [--size BYTES] [--time SECONDS]
    client.py HOST[:PORT] ping [--count N]
    client.py HOST[:PORT] put FILE NAME
    client.py HOST[:PORT] get NAME FILE
    client.py HOST[:PORT] store DIRECTORY NAME
    client.py HOST[:PORT] fetch NAME DIRECTORY

Before or behind the command: --key FILE, --identity HEX, --encrypt.

It prints one JSON object. It needs the packages `cryptography` and `blake3`.
"""

import argparse
import json
import os
import struct
import sys
import time

import blake3

import copies
import flows
import wire
from postcard import number
from session import Gone, Refused, Session

PORT = 6220


def key_of(path):
    """Key and identity of a key file."""
    with open(path) as file:
        lines = file.read().split("\n")
    identity = None
    if len(lines) > 1 and lines[1].startswith("server "):
        identity = bytes.fromhex(lines[1].split()[1])
    return lines[0].strip(), identity


def open_session(args, request):
    """The session of a request that is granted."""
    host, _, port = args.server.rpartition(":") if ":" in args.server else (args.server, "", PORT)
    key, server = key_of(args.key) if args.key else (None, None)
    if args.identity:
        server = bytes.fromhex(args.identity)
    request = {"form": 1, "encrypted": args.encrypt, **request}
    body = json.dumps(request).encode()
    session = Session((host, int(port)), body, key, server, args.encrypt)
    session.bring_request()
    return session


def payload_size(args):
    """Of a packet of 1500 bytes."""
    return 1500 - 52 - (24 if args.encrypt else 0)


def run(session, seconds, sender=None, receiver=None, each=None):
    """Both ends of the flows, until the time is over or `each` says so."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        session.alive()
        if sender:
            sender.poll()
        heard = session.hear(time.monotonic() + 0.002)
        if heard and heard[0] == "ended":
            break
        for kind, flags, flow, body in session.data:
            if kind == wire.ACK and sender and flow == sender.flow:
                sender.take(flags, body)
            elif kind == wire.DATA and receiver and flow == receiver.flow:
                receiver.take(flags, body)
            elif each:
                each(kind, flow, body)
        session.data.clear()
        if (sender and sender.done) or (each and each(None, 0, b"")):
            break
        if heard and heard[0] == "alive" and heard[3] and receiver and receiver.segments:
            break


def test(args):
    """Memory to memory."""
    size = args.size or 1 << 62
    flow = {"name": "main", "direction": "down" if args.reverse else "up", "window": 200}
    if args.size:
        flow["bytes"] = args.size
    request = {
        "label": "python", "duration": args.time, "until_complete": bool(args.size),
        "flows": [flow],
    }
    session = open_session(args, request)
    mss = payload_size(args)
    count, last = -(-size // mss), b"\0" * mss
    session.start()
    if args.reverse:
        receiver = flows.Receiver(session, 0, lambda seq, payload: None)
        run(session, args.time, receiver=receiver)
        why, result = session.result()
        mine = {"received": receiver.segments, "duplicates": receiver.duplicates}
    else:
        sender = flows.Sender(session, 0, lambda seq: last, count)
        run(session, args.time, sender=sender)
        why, result = session.result()
        mine = {"sent": sender.next, "acknowledged": sender.una, "retransmits": sender.retransmits}
    session.close()
    return {"why": why, "here": mine, "there": summary(result), "met": session.met}


def summary(result):
    """What the server says of its side."""
    result = json.loads(result)
    if result["error"]:
        raise Refused(result["error"])
    return result["flows"]


def ping(args):
    """Round trips of small probes."""
    seconds = args.count * 0.05 + 1
    probes = {"name": "ping", "packet": 100, "every": 0.05}
    session = open_session(args, {"label": "python ping", "duration": seconds, "pings": [probes]})
    session.start()
    times, sent, due = [], [0], [time.monotonic()]
    # A packet stays as long as it was: what sealing adds, padding lacks.
    padding = bytes(100 - 52 - (24 if args.encrypt else 0))

    def each(kind, flow, body):
        if kind == wire.PONG and flow == 0 and len(body) >= 12:
            _, stamp = struct.unpack(">QI", body[:12])
            times.append((flows.micros() - stamp & 0xFFFFFFFF) / 1000)
        if sent[0] < args.count and time.monotonic() >= due[0]:
            session.send_data(
                wire.PING, 0, 0, struct.pack(">QI", sent[0], flows.micros()) + padding
            )
            sent[0] += 1
            due[0] += 0.05
        return len(times) == args.count

    run(session, seconds, each=each)
    why, _ = session.result()
    session.close()
    return {"why": why, "sent": sent[0], "received": len(times), "rtt_ms": times}


def put(args):
    """A file to the server."""
    with open(args.file, "rb") as file:
        data = file.read()
    about = os.stat(args.file)
    mss = payload_size(args)
    session = open_session(args, {
        "label": "python put", "duration": 600, "until_complete": True,
        "flows": [{"name": "main", "direction": "up", "bytes": max(len(data), 1)}],
        "put": {"name": args.name, "size": len(data), "changed": about.st_mtime_ns,
                "mode": about.st_mode & 0o777},
    })
    prepared = session.question(number(0))
    there, digest = prepared[4], prepared[5]
    begin = there if blake3.blake3(data[:there]).digest() == digest else 0
    session.question(number(1) + number(begin))
    rest = data[begin:]
    why = "nothing to send"
    if rest:
        session.start()
        sender = flows.Sender(session, 0, lambda seq: rest[seq * mss : (seq + 1) * mss],
                              -(-len(rest) // mss))
        run(session, 600, sender=sender)
        why, _ = session.result()
    verdict = session.question(number(3) + blake3.blake3(data).digest())
    session.close()
    return {"why": why, "bytes": len(data), "resumed": begin, "verdict": verdict[0]}


def received(session, size, mss):
    """All bytes of a flow down."""
    data = bytearray(size)

    def deliver(seq, payload):
        data[seq * mss : seq * mss + len(payload)] = payload

    if size:
        session.start()
        receiver = flows.Receiver(session, 0, deliver)
        run(session, 600, receiver=receiver, each=lambda *_: receiver.cum * mss >= size)
        session.result()
    return data


def get(args):
    """A file of the server."""
    mss = payload_size(args)
    session = open_session(args, {
        "label": "python get", "duration": 600, "until_complete": True,
        "flows": [{"name": "main", "direction": "down"}], "get": {"name": args.name},
    })
    size = session.question(number(0))[1]
    session.question(number(2) + number(0) + blake3.blake3(b"").digest())
    data = received(session, size, mss)
    whole = session.question(number(3) + bytes(32))[1]
    session.close()
    if blake3.blake3(bytes(data)).digest() != whole:
        raise Gone("the file is not the server's")
    with open(args.file, "wb") as file:
        file.write(data)
    return {"bytes": size, "verdict": "digest"}


def store(args):
    """A directory to the server."""
    items = copies.items_below(args.directory, args.name)
    about = {"items": [item for item, _ in items]}
    session = open_session(args, copies.request("up", store=about))
    rest, report = copies.agree_to_store(session, items)
    if rest:
        mss = payload_size(args)
        session.start()
        sender = flows.Sender(session, 0, lambda seq: rest[seq * mss : (seq + 1) * mss],
                              -(-len(rest) // mss))
        run(session, 600, sender=sender)
        session.result()
    report = copies.publish(session, report)
    session.close()
    return {**report, "bytes": len(rest), "met": session.met}


def fetch(args):
    """A directory of the server."""
    mss = payload_size(args)
    session = open_session(args, copies.request("down", fetch={"names": [args.name]}))
    items, size = copies.agree_to_fetch(session)
    data = received(session, size, mss)
    report = copies.publish(session, copies.write(items, data, args.name, args.directory))
    session.close()
    return {**report, "bytes": size, "met": session.met}


def positive(text):
    """A whole number of an argument, at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is no whole number from 1 on")
    return int(text)


def seconds(text):
    """A time of an argument, more than none."""
    try:
        time_s = float(text)
    except ValueError:
        time_s = 0.0
    if not 0 < time_s < 86400:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of seconds")
    return time_s


def main():
    # Known to every command, too, where they must not reset what stands before it.
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--key", metavar="FILE", help="key file")
    common.add_argument("--identity", metavar="HEX", help="identity of the server")
    common.add_argument("--encrypt", action="store_true", help="encrypt the data, too")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, parents=[common]
    )
    parser.add_argument("server", metavar="HOST[:PORT]")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("test", parents=[common])
    command.add_argument("--reverse", action="store_true")
    command.add_argument("--size", type=positive)
    command.add_argument("--time", type=seconds, default=5.0)
    command.set_defaults(run=test)
    command = commands.add_parser("ping", parents=[common])
    command.add_argument("--count", type=positive, default=10)
    command.set_defaults(run=ping)
    for name, does, fields in (
        ("put", put, ("file", "name")), ("get", get, ("name", "file")),
        ("store", store, ("directory", "name")), ("fetch", fetch, ("name", "directory")),
    ):
        command = commands.add_parser(name, parents=[common])
        for field in fields:
            command.add_argument(field)
        command.set_defaults(run=does)
    args = argparse.Namespace(key=None, identity=None, encrypt=False)
    parser.parse_args(namespace=args)
    try:
        print(json.dumps(args.run(args)))
    except (Refused, Gone) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
