"""fullpipe, and what it has answered before."""

import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import sys

from .items import Error, ROOT


class NotKept(Exception):
    """A result that is not in the cache, where nothing may run."""


class Program:
    """fullpipe, and what it has answered before."""

    frozen = False  # nothing may run
    blank = False  # nothing is kept either

    def __init__(self, path, cache, nice, quick, keep=False, any_program=False):
        self.path, self.cache, self.nice, self.quick = path, pathlib.Path(cache), nice, quick
        self.keep, self.any_program = keep, any_program
        self.known, self.used, self.builds, self.sets = {}, {}, {}, {}
        self.standing = set()  # scenarios of which the page is the only result

    def is_quick(self, scenario):
        return self.quick == "all" or scenario in self.quick

    def arguments(self, show):
        words = ["run", show["run"]]
        if "ground" in show:
            words += ["--ground", show["ground"]]
        for setting in show.get("set", []):
            words += ["--set", setting]
        if self.is_quick(show["run"]):
            words.append("--quick")
        return words

    def run(self, show):
        """Result of a scenario, taken from the cache if program and scenario are the same."""
        words = self.arguments(show)
        text = " ".join(words)
        more = [f"on ground {show['ground']}"] if "ground" in show else []
        self.sets.setdefault(show["run"], set()).update(show.get("set", []) + more)
        if text not in self.known:
            slug = re.sub(r"[^A-Za-z0-9]+", "-", show["run"].removesuffix(".toml"))
            if len(words) > 2:
                rest = [w for w in words[2:] if w != "--quick"]
                if rest:
                    slug += "-" + digest_of(" ".join(rest))[:8]
                slug += "-quick" if "--quick" in words else ""
            self.known[text] = self.stored(slug, words, "seeds" in show)
        if show["run"] not in self.used:
            self.used[show["run"]] = self.known[text]
        return self.known[text]

    def law(self, show):
        words = ["law", show["law"], "--window", str(show["window"]), "--rtt", show["rtt"]]
        text = " ".join(words)
        if text not in self.known:
            self.known[text] = self.stored("law-" + digest_of(text)[:8], words)
        return self.known[text]

    def test(self, show):
        """1 if the test passes; kept as long as the program is the same."""
        words = ["test", "-p", show["package"], "--test", "it", show["test"], "--", "--exact",
                 "--nocapture"]
        text = " ".join(words)
        if text not in self.known:
            self.known[text] = self.stored("test-" + digest_of(text)[:8], words)
        return self.known[text]

    def stored(self, slug, words, by_seed=False):
        if self.blank:
            raise NotKept(text_of(words))
        kept = self.cache / f"{slug}.json"
        stamp = {"arguments": words, "program": self.path and digest(self.path)}
        if words[0] == "run":
            stamp["scenario"] = digest(scenario_file(words[1]))
        if kept.exists():
            entry = json.loads(kept.read_text())
            was = entry.get("stamp", {})
            if {**was, "program": None} == {**stamp, "program": None}:
                if self.any_program or was["program"] == stamp["program"]:
                    self.builds[words[1]] = was["program"]
                    return entry["result"]
        if self.frozen:
            raise NotKept(text_of(words))
        if words[0] == "test":
            return self.keep_entry(kept, stamp, {"passes": passes(words)})
        more = ["--format", "json"]
        if words[0] == "run":
            more += ["--jobs", "1", "--quiet"]
            if self.keep or by_seed:
                more += ["--out", str(self.cache / slug), "--resume"]
        result = json.loads(self.call(words + more))
        if by_seed:
            runs = sorted((self.cache / slug / "runs").glob("*.json"))
            result["runs"] = [json.loads(r.read_text()) for r in runs]
        return self.keep_entry(kept, stamp, result)

    def keep_entry(self, kept, stamp, result):
        self.cache.mkdir(parents=True, exist_ok=True)
        self.builds[stamp["arguments"][1]] = stamp["program"]
        kept.write_text(json.dumps({"stamp": stamp, "result": result}))
        return result

    def call(self, words):
        line = ["nice", "-n", str(self.nice), str(self.path)] + words
        print(f"$ fullpipe {' '.join(map(quoted, words))}", file=sys.stderr, flush=True)
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
        if done.returncode not in (0, 1):  # 1: an expectation of the scenario failed
            raise Error(f"`{' '.join(line)}` ended with {done.returncode}:\n{done.stderr.strip()}")
        return done.stdout


def passes(words):
    """Whether exactly the named test ran, and passed."""
    print(f"$ cargo {' '.join(words)}", file=sys.stderr, flush=True)
    done = subprocess.run(["cargo", *words], cwd=ROOT, capture_output=True, text=True)
    if "skipped: " in done.stderr:
        reason = done.stderr.split("skipped: ", 1)[1].split("\n")[0]
        raise Error(f"`cargo {' '.join(words)}` was skipped: {reason}")
    if "1 passed" not in done.stdout and "1 failed" not in done.stdout:
        raise Error(f"`cargo {' '.join(words)}` ran no such test:\n{done.stderr.strip()[-500:]}")
    return done.returncode == 0


def scenario_file(name):
    return ROOT / name if name.endswith(".toml") else ROOT / "scenarios" / f"{name}.toml"


def text_of(words):
    return " ".join(map(quoted, words))


def digest_of(text):
    return hashlib.sha256(text.encode()).hexdigest()


def digest(path):
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()[:16]
    except OSError as e:
        raise Error(f"{path}: {e.strerror}")


def quoted(word):
    return shlex.quote(word)
