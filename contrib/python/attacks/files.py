"""Names, disks, modes, and files that change or end in the middle of a copy."""

import collections
import hashlib
import os
import random
import shutil
import stat
import subprocess
import time

from harness import (
    FIRST, ITEMS, PREPARED, Refused, Serving, Skipped, attack, ended, fetch, get, put,
)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:8] if path.exists() else None


def asked(server, request):
    """What a request gets: a refusal, or the answer to PREPARED."""
    for _ in range(100):
        client = server.raw()
        try:
            verdict = client.granted(request)
        except Refused:
            time.sleep(0.05)
            continue
        except TimeoutError:
            return "silence"
        answer = None
        if verdict and verdict[0] == "granted":
            answer = client.ask(PREPARED)
        client.close()
        return (answer or verdict)[:2]
    return "busy"


NAMES = [
    "../outside/x", "..", ".", "/etc/passwd", "./outside/x", "a/../../x", "sub/../../outside/x",
    "link/secret", "link/new", "slink", "dangling", "fifo", "null", "zero", "sub", "sub/", "pf",
    "pl", "ps", "ps2", "pd", "x\0y", "x\ny", "..\\x", "C:\\x", "x" * 201, "y/" * 499 + "z",
    "n" * 1001, "", "\u202egnp.exe", "\uff0e\uff0e/x", "%2e%2e/x", "~root", "x.part",
    "x.part.state", "x.part.state~", " ", "nodir/new", "\u2028x", "*", "$(id)", "\ud800",
]


@attack("t7", "42 names x get and put: above, links, pipes, devices, parts", "nothing outside touched")
def names(folder):
    files, outside = folder / "files", folder / "outside"
    (files / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_text("SECRET")
    for link, to in {
        "link": outside, "slink": outside / "secret", "dangling": outside / "new",
        "pl.part": outside / "pl", "ps.part.state~": outside / "st",
        "ps2.part.state": outside / "st2",
    }.items():
        (files / link).symlink_to(to)
    os.mkfifo(files / "fifo")
    os.mkfifo(files / "pf.part")
    (files / "pd.part").mkdir()
    for name, minor in (("null", 3), ("zero", 5)):
        os.mknod(files / name, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
    options = ("--files", files, "--overwrite", "--max-tests-per-peer", 16)
    with Serving(folder, *options) as server:
        read, kept = [], []
        for name in NAMES:
            got = asked(server, get(name))
            if got[0] == "prepared":
                read.append(name)
            if asked(server, put(name, 10, overwrite=True))[0] == "prepared":
                kept.append(name)
        panics = server.panics()
    inside = sorted(p.name for p in outside.iterdir())
    seen = f"read {read}; would write {[ascii(n[:12]) for n in kept]}; outside {inside}"
    held = not read and inside == ["secret"] and not panics
    return seen, held and (outside / "secret").read_text() == "SECRET"


def mounted(folder, kind):
    """A disk of 300 MB."""
    at = folder / "disk"
    at.mkdir()
    if os.geteuid():
        raise Skipped("a disk needs root")
    if kind == "ext4":
        image = folder / "image"
        command = f"truncate -s 300M {image} && mkfs.ext4 -q -F {image} && mount -o loop {image} {at}"
    else:
        command = f"mount -t tmpfs -o size=30M tmpfs {at}"
    if subprocess.run(command, shell=True, capture_output=True).returncode:
        raise Skipped("no disk can be mounted")
    return at


@attack("t5", "puts of more than an ext4 of 300 MB has", "0 bytes free for a week")
def disk(folder):
    at = mounted(folder, "ext4")

    def free():
        about = os.statvfs(at)
        return about.f_bavail * about.f_frsize // 1_000_000

    try:
        with Serving(folder, "--files", at, "--max-tests-per-peer", 16) as server:
            seen = [f"free {free()} MB"]
            for name, size in (
                ("a", 10**8), ("b", 10**10), ("c", 10**6), ("d", 2**40), ("e", 2**62),
                ("f", 2**63), ("g", 2**64 - 1),
            ):
                asked(server, put(name, size))
                time.sleep(0.3)
                seen.append(f"{size:.0e}: {free()}")
            left = sorted(p.name for p in at.iterdir() if p.name != "lost+found")
            last = free()
            panics = server.panics()
        return f"{', '.join(seen)}; left {left}", last > 100 and not panics
    finally:
        subprocess.run(["umount", at], check=False)


@attack("t10", "20 kills of server or client in the middle of 60 MB", "20 of 20 whole")
def kills(folder):
    random.seed(5)
    files = folder / "files"
    files.mkdir()
    source = folder / "k.bin"
    source.write_bytes(os.urandom(60_000_000))
    want, whole, half, resumed, flying = digest(source), 0, 0, 0, 0
    server = Serving(folder, "--files", files)
    for i in range(20):
        name = f"f{i}"
        target = files / name
        arguments = ["send", source, f"@:{name}"]
        if i % 4 == 3:
            shutil.copy(source, files / "src")
            target = folder / f"got{i}"
            arguments = ["send", "@:src", target]
        arguments += ["--encrypt"] * (i % 2)
        client = server.client(*arguments)
        time.sleep(random.uniform(0.1, 1.2))
        flying += client.poll() is None
        if random.random() < 0.5:
            server.process.kill()
            server.process.wait()
            client.kill()
            client.communicate()
            server = Serving(folder, "--files", files, port=server.port)
        else:
            client.kill()
            client.communicate()
        half += target.exists() and digest(target) != want
        resumed += target.with_name(target.name + ".part").exists()
        for _ in range(4):
            if ended(server.client(*arguments), 90)[0] == 0:
                break
            time.sleep(2)
        whole += digest(target) == want
        target.unlink(missing_ok=True)
    server.end()
    seen = f"{flying} in flight, {whole} of 20 whole, {half} half-written, {resumed} parts left"
    return seen, whole == 20 and half == 0


@attack("own n", "one directory fetched under 20,000 names, and one of 300,000 entries", "no lists")
def lists(folder):
    files = folder / "files"
    (files / "d").mkdir(parents=True)
    (files / "hidden").mkdir()
    for i in range(200):
        (files / "d" / str(i)).touch()
    for i in range(300_000):
        (files / "hidden" / f".{i}").touch()
    seen, held = [], True
    with Serving(folder, "--files", files, "--max-memory", "400MB") as server:
        for name, names in (("names", ["d"] * 20_000), ("entries", ["hidden"])):
            before = server.stat()["VmRSS"]
            client = server.raw()
            client.granted(fetch(names))
            answer = client.ask(ITEMS + FIRST, seconds=20)
            # Who goes takes the work along.
            client.close()
            time.sleep(0.5)
            stat = server.stat()
            more = (stat["VmHWM"] - before) / 1000
            seen.append(f"{name}: {answer and answer[:2]}, {more:.0f} MB")
            held &= bool(answer) and answer[0] == "failed" and more < 150 and stat["Threads"] <= 3
        return "; ".join(seen), held and not server.panics()


@attack("own d", "a fetch of 1,000 directories where there are 1,024 descriptors", "no directories")
def directories(folder):
    files = folder / "files"
    for i in range(1000):
        (files / "wide" / str(i)).mkdir(parents=True)
        (files / "wide" / str(i) / "x").touch()
    few = ("setpriv", "--bounding-set", "-sys_resource", "prlimit", "--nofile=1024:1024")
    options = ("--files", files, "--max-tests-per-peer", 16)
    with Serving(folder, *options, prefix=few) as server:
        client = server.raw()
        client.granted(fetch(["wide"]))
        answer = client.ask(ITEMS + FIRST, seconds=10)
        fds, others, kept = server.stat()["fds"], collections.Counter(), []
        for i in range(6):
            other = server.raw()
            try:
                others[other.granted(put(f"other{i}", 10))[0]] += 1
                others[(other.ask(PREPARED) or ["silence"])[0]] += 1
            except (Refused, TimeoutError) as no:
                others[f"no session: {no}"] += 1
            kept.append(other)
        seen = f"it gets {answer and answer[:1]}, {fds} descriptors; others meanwhile {dict(others)}"
        return seen, others["prepared"] == 6 and not server.panics()


@attack("own p", "parts in 2,000 directories beside 300 descriptors and --max-partial", "no directories")
def promises(folder):
    """What lies in directories that cannot be opened must count too."""
    files = folder / "files"
    few = ("setpriv", "--bounding-set", "-sys_resource", "prlimit", "--nofile=300:300")
    for i in range(2000):
        (files / str(i)).mkdir(parents=True)
    with Serving(folder, "--files", files, "--max-partial", "10MB", prefix=few) as server:
        seen = collections.Counter()
        for i in range(0, 2000, 100):
            answer = asked(server, put(f"{i}/x", 1_000_000))
            seen[str(answer[0])] += 1
        return f"of 20 parts of 1 MB within a limit of 10 MB {dict(seen)}", seen["prepared"] in (9, 10)


@attack("t7 modes", "modes of copies; a second link under the name of a part", "0600 became 0644")
def modes(folder):
    files = folder / "files"
    files.mkdir()
    private = folder / "private"
    private.write_bytes(b"p" * 5000)
    private.chmod(0o600)
    with Serving(folder, "--files", files, "--overwrite") as server:
        seen = {}

        def copy(name, to, *arguments):
            code = ended(server.client("send", *arguments))[0]
            seen[name] = (code, oct(to.stat().st_mode & 0o777) if to.exists() else None)

        copy("put", files / "p", private, "@:p")
        copy("replace", files / "p", private, "@:p", "--overwrite")
        copy("get", folder / "got", "@:p", folder / "got")
        good = files / "hl"
        good.write_bytes(b"GOOD" * 100_000)
        os.link(good, files / "hl.part")
        before = digest(good)
        asked(server, put("hl", 100_000, overwrite=True))
        kept = digest(good) == before
    held = all(value == (0, "0o600") for value in seen.values())
    return f"{seen}; file under a second link unchanged {kept}", held and kept


@attack("t16", "two clients, one name; sources and parts that change", "foreign part published, rc 0")
def changes(folder):
    files = folder / "files"
    files.mkdir()
    one, two = folder / "one", folder / "two"
    for path in (one, two):
        path.write_bytes(os.urandom(12_000_000))
    seen, held = {}, True
    with Serving(folder, "--files", files, "--overwrite", "--max-rate", "40Mbit/s") as server:
        first = server.client("send", one, "@:same")
        time.sleep(0.8)
        second = server.client("send", two, "@:same")
        codes = ended(first)[0], ended(second)[0]
        seen["one name"] = codes
        held &= digest(files / "same") in (digest(one), digest(two))
        for how in ("append", "inside", "truncate"):
            source = folder / how
            source.write_bytes(os.urandom(12_000_000))
            before = digest(source)
            client = server.client("send", source, f"@:{how}")
            time.sleep(0.8)
            with open(source, "r+b") as file:
                if how == "append":
                    file.seek(0, 2)
                    file.write(b"x" * 1000)
                elif how == "truncate":
                    file.truncate(1_000_000)
                else:
                    file.seek(11_900_000)
                    file.write(b"CHANGED!" * 1000)
            code = ended(client)[0]
            there = (files / how).exists()
            seen[how] = (code, there)
            # All of what was there before the change is as good as all of what is there now.
            held &= code != 0 or digest(files / how) in (before, digest(source))
        for how in ("gone", "swap"):
            client = server.client("send", one, f"@:{how}")
            time.sleep(0.8)
            part = files / f"{how}.part"
            try:
                if how == "gone":
                    part.unlink()
                else:
                    part.rename(files / "x")
                    part.write_text("EVIL")
            except FileNotFoundError:
                seen[how] = "too late"
            code = ended(client)[0]
            seen[how] = (code, (files / how).exists())
            held &= not (files / how).exists() or digest(files / how) == digest(one)
        held &= not server.panics()
    return str(seen), held


@attack("t16 full", "a disk that somebody else fills, at either end", "whole, or refused")
def full(folder):
    at = mounted(folder, "tmpfs")
    try:
        source = folder / "w"
        source.write_bytes(os.urandom(12_000_000))
        large = folder / "large"
        large.write_bytes(os.urandom(40_000_000))
        with Serving(folder, "--files", at, "--max-rate", "40Mbit/s") as server:
            client = server.client("send", source, "@:d")
            time.sleep(0.8)
            try:
                (at / "fill").write_bytes(b"z" * 40_000_000)
            except OSError:
                pass
            code, _, words = ended(client)
            whole = digest(at / "d") == digest(source)
            (at / "fill").unlink()
            (at / "d").unlink(missing_ok=True)
            larger = ended(server.client("send", large, "@:e"))
            left = sorted(p.name for p in at.iterdir())
        shelf = folder / "shelf"
        shelf.mkdir()
        shutil.copy(large, shelf / "big")
        with Serving(folder, "--files", shelf) as server:
            back = ended(server.client("send", "@:big", at / "big"))[0]
        here = sorted(p.name for p in at.iterdir())
        seen = f"filled meanwhile: rc {code}, whole {whole} {words[-90:]}; larger than the disk: rc {larger[0]}, "
        seen += f"left {left}; get into it: rc {back}, left {here}"
        # What can be resumed may stay.
        held = not {*left, *here} - {"d.part", "d.part.state"}
        return seen, (whole or code == 3) and larger[0] == 3 and back == 3 and held
    finally:
        subprocess.run(["umount", at], check=False)
