"""Servers that have the key, against clients that fetch directories."""

import concurrent.futures
import os

from harness import Fake, Serving, attack
from postcard import Reader, number, text
from servers import GRANT, alive, closed, ended, have, parts

# Answers.
FAILED, ITEMS, DIFFER, TREE, NOTED, READY, ROOTS, NAMED, LEFT_OUT = 1, 8, 10, 11, 12, 13, 14, 15, 16
# Questions.
ASKS_ITEMS, ASKS_HERE, ASKS_TREE, ASKS_PLAN, ASKS_READY, ASKS_ROOTS, ASKS_PUBLISH, ASKS_LEFT_OUT = (
    5, 7, 8, 9, 10, 11, 13, 14,
)
STEERS = "\x1b\x07\u202e"
ESCAPES = "\x1b[2J\x07\u202e"
# A client whose server sends nothing gives up after 120 s.
PATIENCE = 150


def item(name, size=None, mode=0o755):
    """A directory, or a file of so many bytes."""
    name = name if isinstance(name, bytes) else name.encode()
    about = b"\0" if size is None else b"\1" + number(size) + number(1)
    return text(name) + about + number(mode)


def items(entries, all_=None, left_out=0):
    all_ = len(entries) if all_ is None else all_
    return number(ITEMS) + number(len(entries)) + b"".join(entries) + number(all_) + number(left_out)


def left_out(names):
    entries = [text(name.encode()) + text(b"a link" + name.encode()) + b"\0" for name in names]
    return number(LEFT_OUT) + number(len(entries)) + b"".join(entries)


class Tree:
    """What a server says of its directory; 0 files, or more, are sent to nobody."""

    def __init__(self, answers, result=b""):
        self.answers, self.result = answers, result

    def behave(self, fake, message, body):
        if message == "part":
            have(fake, body)
            if fake.request is not None:
                fake.say(GRANT)
        elif message == "content":
            reader = Reader(body)
            n, question = reader.number(), reader.number()
            answer = self.answers.get(question, DEFAULTS.get(question, number(NOTED)))
            if callable(answer):
                answer = answer(reader)
            fake.say(number(6) + number(n) + answer)
        elif message in ("start", "alive"):
            alive(fake, body)
        elif message == "stop":
            ended(self.result)(fake, body)
        elif message == "ask":
            parts(self.result)(fake, body)
        elif message == "close":
            closed(fake, body)


DEFAULTS = {
    ASKS_HERE: number(DIFFER) + number(0), ASKS_TREE: number(TREE) + number(0),
    ASKS_PLAN: number(NOTED), ASKS_READY: number(READY),
    ASKS_ROOTS: number(ROOTS) + number(1) + bytes(32),
    ASKS_PUBLISH: number(NAMED) + b"\1" + number(0) + number(0),
    ASKS_LEFT_OUT: left_out([ESCAPES]),
}


def listing(*entries, **about):
    return {ASKS_ITEMS: items([item("d"), *entries], **about)}


def endless(reader):
    """A list that grows with every question."""
    first = reader.number()
    entries = [item(f"d/{i}", 0) for i in range(first, first + 30)]
    return items(entries if first else [item("d"), *entries[1:]], all_=2**32 - 1)


CASES = {
    "names above": listing(item("d/../up", 0), item("d/../../up", 0), item("d//x", 0)),
    "names elsewhere": listing(item("/tmp/up", 0), item("up", 0), item("du", 0)),
    "through a link that is here": listing(item("d/link/x", 0), item("d/link", None)),
    "over a link that is here": listing(item("d/file", 0)),
    "hidden": listing(item("d/.profile", 0), item("d/.ssh"), item("d/.ssh/authorized_keys", 0)),
    "temporary": listing(item("d/x.part", 0), item("d/x.part.state", 0), item("d/x.part.state~", 0)),
    "a directory in the place of a part": listing(item("d/x.part/y", 0), item("d/x", 0)),
    "a file that is a directory too": listing(item("d/a", 0), item("d/a/b", 0), item("d/a", None)),
    "escapes": listing(item(f"d/{ESCAPES}", 0), item("d/ok", 0), left_out=1),
    "not UTF-8": listing(item(b"d/\xff\xfe", 0)),
    "a name of 900 digits": listing(item("d/" + "9" * 900, 0)),
    "200 directories in each other": listing(
        item("d" + "/e" * 200), item("d" + "/f" * 200, 0)
    ),
    "2^64-1 bytes": listing(item("d/a", 2**64 - 1)),
    "three times 2^63 bytes": listing(*[item(f"d/{i}", 2**63) for i in range(3)]),
    "2^62 bytes": listing(item("d/a", 2**62)),
    "2^32-1 items": {ASKS_ITEMS: endless},
    "fewer items than announced": {ASKS_ITEMS: lambda r: items(
        [item("d")] if r.number() == 0 else [], all_=3
    )},
    "2^32-1 left out": listing(item("d/a", 0), left_out=2**32 - 1),
    "none of those left out": listing(left_out=5) | {ASKS_LEFT_OUT: left_out([])},
    "set-user-ID for all": listing(item("d/a", 0, 0o6777), item("d/b", None, 0o7777)),
    "no permissions at all": listing(item("d/e", None, 0), item("d/e/a", 0, 0)),
    "another digest": listing(item("d/a", 0)) | {
        ASKS_PUBLISH: number(NAMED) + b"\0" + number(0) + number(0)
    },
    "failed ones that are none": listing(item("d/a", 0)) | {
        ASKS_PUBLISH: number(NAMED) + b"\1" + number(2) + number(7) + text(ESCAPES.encode())
        + number(2**32 - 1) + text(b"x") + number(2**32 - 1)
    },
    "no byte of a file ever comes": listing(item("d/a", 1000)),
}


@attack("own t", "24 servers against a client that fetches a directory", "no directories")
def fetched(folder):
    with Serving(folder) as server:

        def one(case):
            name, answers = case
            at = folder / f"case {len(name)} {name[:12].replace('/', ' ')}"
            outside, here = at / "outside", at / "here"
            outside.mkdir(parents=True)
            (here / "d").mkdir(parents=True)
            (outside / "secret").write_text("SECRET")
            (here / "d/link").symlink_to(outside)
            (here / "d/file").symlink_to(outside / "secret")
            code, lasted, words, most = Fake(server, Tree(answers).behave).against(
                server, "send", "@:d", here, "--overwrite", seconds=PATIENCE
            )
            found = sorted(str(p.relative_to(here)) for p in here.rglob("*"))
            strange = [p for p in at.rglob("*") if p.is_file() and p.stat().st_mode & 0o7022]
            touched = sorted(p.name for p in outside.iterdir()) != ["secret"]
            touched |= sorted(p.name for p in at.iterdir()) != ["here", "outside"]
            touched |= (outside / "secret").read_text() != "SECRET"
            touched |= sorted(p.name for p in here.iterdir()) != ["d"] or bool(strange)
            return name, code, lasted, words, most, found, touched

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            seen = list(pool.map(one, CASES.items()))
    if os.environ.get("ATTACK_DETAILS"):
        for case in seen:
            print(case, flush=True)
    hang = [case[0] for case in seen if case[1] is None]
    panics = [case[0] for case in seen if "panicked" in case[3]]
    odd = [case[0] for case in seen if any(c in case[3] for c in STEERS)]
    touched = [case[0] for case in seen if case[6]]
    most = max(case[4] for case in seen)
    longest = max(case[2] for case in seen)
    text_ = f"{len(seen)} cases: {len(hang)} hang {hang}, {len(panics)} panics {panics}, "
    text_ += f"{len(touched)} outside {touched}, escapes passed on by {odd}; the longest "
    text_ += f"{longest:.0f} s, {most} MB at most"
    return text_, not (hang or panics or odd or touched) and most < 100
