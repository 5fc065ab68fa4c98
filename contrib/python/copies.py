"""Copies of several files, written from docs/wire.md: the shortest way that the page names."""

import os
import pathlib
import struct

import blake3

from postcard import number
from session import Gone, Refused

FOUND, ITEMS, PLAN, READY, PUBLISH = 6, 5, 9, 10, 13


def request(direction, **content):
    """A request for such a copy."""
    flow = {"name": "main", "direction": direction}
    return {"label": "python copy", "duration": 600, "until_complete": True, "flows": [flow], **content}


def items_below(directory, name):
    """Entries of a request, and the bytes of files: a directory before what is in it."""
    root = pathlib.Path(directory)
    found = []
    for path in [root, *sorted(root.rglob("*"))]:
        about = path.stat()
        entry = {"name": str(pathlib.PurePosixPath(name) / path.relative_to(root).as_posix())}
        entry["mode"] = about.st_mode & 0o777
        data = None
        if path.is_file():
            data = path.read_bytes()
            entry.update(size=len(data), changed=about.st_mtime_ns)
        found.append((entry, data))
    return found


def until_ready(session, size):
    """READY, when both sides plan the same."""
    answer = session.question(number(READY) + number(size))
    if answer[0] != "ready":
        raise Gone(f"not ready: {answer}")


def agree_to_store(session, items):
    """The bytes to send; files by index and hash, and what is refused."""
    there, at = {}, 0
    while at < len(items):
        _, found, after = session.question(number(FOUND) + number(at))
        there.update(found)
        at = after
    orders, stream, files, refused, skipped = [], [], {}, [], []
    for i, (entry, data) in enumerate(items):
        if data is None:
            continue
        what = there.get(i)
        hash_ = blake3.blake3(data).digest()
        if what and what[0] == "refused":
            refused.append(what[1])
            continue
        if what and what[0] == "whole" and what[1] == hash_:
            orders.append(number(i) + b"\0")
            skipped.append(entry["name"])
            continue
        if what and what[0] == "whole":
            # It was not asked for that it be replaced.
            orders.append(number(i) + b"\0")
            refused.append(f"{entry['name']}: another file of this name exists")
            continue
        if what and what[0] == "part" and data:
            # Of a part all is sent again.
            orders.append(number(i) + b"\1" + number(1) + number(0) + number(len(data)))
        files[i] = hash_
        stream.append(data)
    for at in range(0, len(orders), 32):
        page = orders[at : at + 32]
        session.question(number(PLAN) + number(len(page)) + b"".join(page))
    rest = b"".join(stream)
    until_ready(session, len(rest))
    return rest, {"files": files, "refused": refused, "skipped": skipped}


def agree_to_fetch(session):
    """What is there, and how many bytes will come."""
    items, all_ = [], 1
    while len(items) < all_:
        _, more, all_, _ = session.question(number(ITEMS) + number(len(items)))
        if not more and len(items) < all_:
            raise Gone("a list without an end")
        items += more
    size = sum(size or 0 for _, size, _, _ in items)
    until_ready(session, size)
    return items, size


def write(items, data, name, directory):
    """The files of a stream, below `directory`; their hashes."""
    at, files = 0, {}
    root = pathlib.Path(directory)
    for i, (path, size, changed, mode) in enumerate(items):
        below = pathlib.PurePosixPath(path).relative_to(name)
        if ".." in below.parts:
            raise Refused("a name that leads outside")
        target = root / below
        if size is None:
            target.mkdir(parents=True, exist_ok=True)
            continue
        part = bytes(data[at : at + size])
        at += size
        files[i] = blake3.blake3(part).digest()
        target.write_bytes(part)
        target.chmod(mode)
        os.utime(target, ns=(changed, changed))
    return {"files": files, "refused": [], "skipped": []}


def publish(session, report):
    """Both sides have the same, or they do not."""
    files = report.pop("files")
    digest = blake3.blake3(b"".join(struct.pack(">I", i) + h for i, h in files.items())).digest()
    answer = session.question(number(PUBLISH) + digest)
    if answer[0] != "named" or not answer[1]:
        raise Gone(f"the files are others there: {answer}")
    failed = [text_ for _, text_ in answer[2]]
    return {**report, "copied": len(files), "failed": failed}
