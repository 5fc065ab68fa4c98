#!/usr/bin/env python3
"""Holds fullpipe against what five documents print, number by number: writes docs/published.md.

    scripts/published.py                    run what is missing, write the page
    scripts/published.py --quick NAME ...   these scenarios with their [quick] settings
    scripts/published.py --quick            all of them
    scripts/published.py --only net100      print one document's table, write nothing
    scripts/published.py --check            run nothing, fail unless the page says what its own
                                            numbers and published/*.toml say, and README the
                                            counts (part of `make lint`)
    scripts/published.py --again            run everything, fail if a verdict no longer holds
    scripts/published.py --keep             keep time series and figures too, resume broken studies
    scripts/published.py --as-it-stands     run nothing: rows without a result stay as the page has
                                            them, if their item is the same;
                                            their verdicts are computed from what it shows

Results are kept as JSON in --cache; a second run takes them from there if program and scenario are
the same (--any-program: or only the scenario).

published/*.toml has one file per document and one [[item]] per claim: `id`, `where` it stands,
`claim` with the printed value, and how fullpipe shows it:

    show = { run = SCENARIO, set = [...], case = {...}, of = NAME, metric = M, over = {...} }
    show = { run = SCENARIO, ground = GROUND, expectations = true }
    show = { law = STACK, window = W, rtt = TIME, field = F }
    show = { test = NAME, package = PACKAGE }

`run` names a built-in scenario or a file of published/cases; `case` picks cases by matrix key, a
list matches any of its values; `of` is a flow, traffic or link (default: the first flow); `over`
divides by the same metric (or `over_metric`) of another case, of a run with other settings if there
is `over_set`, `less` subtracts it. `take =
"mean"`, "min" or "max" makes one value of several cases, otherwise each of them is judged. Instead
of `case` an item may have `cells`, a list of [value of the document, case], judged each by `within`
(a fraction or an amount of the value).
`mean_of` in place of `set` is a list of such lists: each cell is the mean over these runs.
`expectations` is the part of the scenario's expectations that hold (a list: of these), `seeds` =
[of the case, of the other] takes the "min" or "max" over seeds, of cases that differ in the stack.
`test` is 1 if that test of the integration tests of a package passes.

`band` is what counts as reproduced, `band_from` where it comes from: the document's precision or
spread, or a closed form. `ideal` with `ideal_from` is the closed form's band where the document's
own value contains more than the experiment. Nobody writes a verdict:

    reproduced                   every value lies in `band`, and there is no `difference`
    with a stated difference     in `band` or `ideal`, and `difference` says what differs
    not reproduced               otherwise; also if a 95 % interval is over twice as wide as the
                                 band or, of a band with one end, reaches past it
    not applicable               `not_applicable` says what outside of fullpipe the claim is about

A document's [[rank]] puts printed and seen values of several items into one rank correlation:
`about`, and `items`, which have `cells` or `published`, the printed number.

published/causes.toml says why what is not reproduced is not, by experiment: [[cause]] has `claim`,
`what` is suspected, `here` and `switched`, each a `show`, and the `published` number (or band, like
`band`, where the document prints no number: its point nearest to the switched value) between which
the page says how much of the gap the switch closes, and in a word of GRADES what that shows; or
`untested`, why nothing can be switched. A claim that is not reproduced needs one, others have none.

published/claims.toml has the documents' claims as entries, each with the items that show it. An
entry is as good as the worst of its items; not applicable ones count only where there is nothing
else.

A value in `ideal` alone without a sentence of difference is an error. Exit status: 0; 1 if --check
or --again fails; 2 for an error in the items or a run that failed.
"""

import argparse
import difflib
import hashlib
import itertools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = "docs/published.md"
# What a switch shows, by the part of the gap to the printed number that it closes: the least part,
# the word, and the sentence that the page explains it with.
GRADES = [
    (float("-inf"), "moves it away", "below -30 %: the number goes the other way"),
    (-0.3, "does not matter", "-30 to 30 %"),
    (0.3, "moves it part of the way", "30 to 70 %: it may be one cause of several"),
    (0.7, "explains it", "70 to 130 %: the switched value is where the printed one is; whether the "
     "document's experiment had this cause, no switch can tell"),
    (1.3, "moves it past", "above 130 %: the number depends on it, but the document did not have it "
     "to this extent, if at all: no proof of the cause"),
]
UNCLEAR = "unclear"
VERDICTS = ["reproduced", "with a stated difference", "not reproduced", "not applicable"]
KEYS = {
    "id", "where", "claim", "show", "band", "band_from", "ideal", "ideal_from", "difference",
    "cells", "within", "unit", "take", "missing", "not_applicable", "why", "published",
}


class Error(Exception):
    """Something in the items, or a run, that a person has to mend."""


# -- items ---------------------------------------------------------------------------------------


def load(folder):
    """The documents, each with its items checked for form."""
    documents, seen = [], set()
    for path in sorted(pathlib.Path(folder).glob("*.toml")):
        if path.name in ("claims.toml", "causes.toml"):
            continue
        with open(path, "rb") as f:
            try:
                document = tomllib.load(f)
            except tomllib.TOMLDecodeError as e:
                raise Error(f"{path}: {e}")
        document["key"] = path.stem
        for item in document["item"]:
            check_form(item, path)
            if item["id"] in seen:
                raise Error(f"{path}: the id `{item['id']}` occurs twice")
            seen.add(item["id"])
        documents.append(document)
    return sorted(documents, key=lambda d: d.get("order", 99))


def load_claims(path, documents):
    """The entries, each with its document's items."""
    with open(path, "rb") as f:
        try:
            claims = tomllib.load(f)["claim"]
        except tomllib.TOMLDecodeError as e:
            raise Error(f"{path}: {e}")
    ids = {i["id"] for d in documents for i in d["item"]}
    keys = {d["key"] for d in documents}
    for claim in claims:
        name = claim.get("claim", "a claim without text")
        if claim.keys() != {"document", "claim", "items"} or not claim["items"]:
            raise Error(f"{path}: {name}: needs document, claim and items, and no more")
        if claim["document"] not in keys:
            raise Error(f"{path}: {name}: no document `{claim['document']}`")
        unknown = [i for i in claim["items"] if i not in ids]
        if unknown:
            raise Error(f"{path}: {name}: no item `{unknown[0]}`")
    return claims


def load_causes(path, claims):
    """What was switched, or why nothing was, by claim."""
    with open(path, "rb") as f:
        try:
            causes = tomllib.load(f)["cause"]
        except tomllib.TOMLDecodeError as e:
            raise Error(f"{path}: {e}")
    known = {c["claim"] for c in claims}
    for cause in causes:
        if cause.get("claim") not in known:
            raise Error(f"{path}: no claim `{cause.get('claim')}`")
        tested = {"claim", "what", "here", "switched", "published"}
        if cause.keys() not in (tested, {"claim", "what", "untested"}):
            raise Error(f"{path}: {cause['claim']}: needs {', '.join(sorted(tested))}, or claim, "
                        "what and untested")
    return causes


def check_form(item, path):
    name = item.get("id", "an item without id")
    for key in item:
        if key not in KEYS:
            raise Error(f"{path}: {name}: unknown key `{key}`; there are {', '.join(sorted(KEYS))}")
    for key in ["id", "where", "claim"]:
        if not item.get(key):
            raise Error(f"{path}: {name}: `{key}` is missing")
    ways = [k for k in ["show", "missing", "not_applicable"] if item.get(k)]
    if len(ways) != 1:
        raise Error(f"{path}: {name}: needs one of show, missing, not_applicable; has {ways}")
    if "test" in item.get("show", {}):
        item.setdefault("band", [1, 1])
        item.setdefault("band_from", "the test passes")
    if "expectations" in item.get("show", {}):
        item.setdefault("band", [1, 1])
        item.setdefault("band_from", "all of them hold, each with its source in the scenario")
    if "show" in item:
        judged = "band" in item or "cells" in item
        if not judged or not item.get("band_from"):
            raise Error(f"{path}: {name}: needs `band` (or `cells`) and `band_from`")
        if "ideal" in item and not item.get("ideal_from"):
            raise Error(f"{path}: {name}: `ideal` needs `ideal_from`")
        if "cells" in item and "within" not in item:
            raise Error(f"{path}: {name}: `cells` need `within`")


# -- results -------------------------------------------------------------------------------------


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


def matches(params, wanted):
    for key, value in wanted.items():
        if key not in params:
            return False
        values = value if isinstance(value, list) else [value]
        if params[key] not in values:
            return False
    return True


def cases_of(item, result, wanted):
    found = [c for c in result["cases"] if matches(c["params"], wanted)]
    if not found:
        there = "\n".join(f"    {c['params']}" for c in result["cases"])
        raise Error(
            f"{item['id']}: no case of `{result['scenario']}` matches {wanted}; there are\n{there}"
        )
    return found


def part_of(item, case, show):
    """The flow, traffic or link that has the metric, or the case itself."""
    named = case["flows"] + case.get("traffic", []) + case.get("links", [])
    if "of" in show:
        for part in named:
            if part["name"] == show["of"]:
                return part
        names = ", ".join(p["name"] for p in named)
        raise Error(f"{item['id']}: no flow, traffic or link `{show['of']}`; there are {names}")
    if show["metric"].split(".")[0] in case["metrics"]:
        return case["metrics"]
    return case["flows"][0]


def value_of(item, case, show):
    """(mean, low, high) of the metric; low = high = mean with a single seed."""
    part, path = part_of(item, case, show), show["metric"].split(".")
    at = part
    for word in path[:-1]:
        at = at.get(word) if isinstance(at, dict) else None
    if not isinstance(at, dict) or path[-1] not in at:
        raise Error(f"{item['id']}: no metric `{show['metric']}`; see fullpipe list metrics")
    mean = at[path[-1]]
    if mean is None:
        return None
    low, high = at.get(path[-1] + "_ci95") or (mean, mean)
    return mean, low, high


def of_seeds(item, case, show, which, result):
    """The least or the largest of the seeds' values."""
    at = [f["name"] for f in case["flows"]].index(show["of"]) if "of" in show else 0
    stack = case["flows"][at]["stack"]
    if [c["flows"][at]["stack"] for c in result["cases"]].count(stack) != 1:
        raise Error(f"{item['id']}: `seeds` needs cases that differ in the stack")
    flows = [r["metrics"]["flows"][at] for r in result["runs"]]
    found = [f["values"].get(show["metric"]) for f in flows if f["stack"] == stack]
    if not found or None in found:
        raise Error(f"{item['id']}: no metric `{show['metric']}` in every seed")
    v = {"min": min, "max": max}[which](found)
    return v, v, v


def held(item, result, names):
    """The part of the expectations that hold."""
    found = [e for e in result["expectations"] if names is True or e["name"] in names]
    if not found or (names is not True and {e["name"] for e in found} != set(names)):
        raise Error(f"{item['id']}: not all of these expectations are in `{result['scenario']}`")
    return sum(e["pass"] and not e.get("unclear", False) for e in found) / len(found)


def ratio(a, b):
    """Quotient with the widths of both intervals added in squares, as if independent."""
    if a is None or b is None or b[0] == 0:
        return None
    mean = a[0] / b[0]
    rel = [(v[2] - v[1]) / 2 / abs(v[0]) if v[0] else 0 for v in (a, b)]
    half = abs(mean) * (rel[0] ** 2 + rel[1] ** 2) ** 0.5
    return mean, mean - half, mean + half


def mean_of(numbers):
    """Mean of values, their intervals taken as independent; None if one of them is undefined."""
    if None in numbers:
        return None
    n = len(numbers)
    mean = sum(v[0] for v in numbers) / n
    half = sum(((v[2] - v[1]) / 2) ** 2 for v in numbers) ** 0.5 / n
    return mean, mean - half, mean + half


def difference(a, b):
    """a - b, the interval like that of a ratio."""
    if a is None or b is None:
        return None
    half = (((a[2] - a[1]) / 2) ** 2 + ((b[2] - b[1]) / 2) ** 2) ** 0.5
    return a[0] - b[0], a[0] - b[0] - half, a[0] - b[0] + half


def values(item, program):
    """[(label, published or None, value)] of an item."""
    show = item["show"]
    if "law" in show:
        rows = program.law(show)["laws"][0]["windows"]
        row = next((r for r in rows if r["window"] == show["window"]), None)
        if row is None or show["field"] not in row:
            fields = ", ".join(rows[0])
            raise Error(
                f"{item['id']}: no `{show['field']}` at {show['window']}; there are {fields}")
        v = row[show["field"]]
        return [("", None, (v, v, v))]
    if "test" in show:
        v = float(program.test(show)["passes"])
        return [("", None, (v, v, v))]
    if "mean_of" in show:
        runs = [program.run({**show, "set": settings}) for settings in show["mean_of"]]
        out = []
        for published, wanted in item["cells"]:
            cases = [cases_of(item, r, {**show.get("case", {}), **wanted}) for r in runs]
            found = [value_of(item, case, show) for of_run in cases for case in of_run]
            out.append((label(cases[0][0]), published, mean_of(found)))
        return out
    result = program.run(show)
    if "expectations" in show:
        v = held(item, result, show["expectations"])
        return [("", None, (v, v, v))]
    if "cells" in item:
        out = []
        for published, wanted in item["cells"]:
            wanted = {**show.get("case", {}), **wanted}
            case = cases_of(item, result, wanted)
            if len(case) > 1:
                raise Error(f"{item['id']}: {wanted} matches {len(case)} cases, a cell needs one")
            out.append((label(case[0]), published, value_of(item, case[0], show)))
        return out
    found = []
    for case in cases_of(item, result, show.get("case", {})):
        v = value_of(item, case, show)
        if "seeds" in show:
            v = of_seeds(item, case, show, show["seeds"][0], result)
        if "over" in show:
            other = {**case["params"], **show["over"]}
            of = {**show, "metric": show.get("over_metric", show["metric"])}
            beside = result
            if "over_set" in show:
                beside = program.run({**show, "set": show["over_set"]})
            other = cases_of(item, beside, other)[0]
            if "seeds" in show:
                v = ratio(v, of_seeds(item, other, of, show["seeds"][1], result))
            else:
                v = ratio(v, value_of(item, other, of))
        if "less" in show:
            other = {**case["params"], **show["less"]}
            v = difference(v, value_of(item, cases_of(item, result, other)[0], show))
        found.append((label(case), None, v))
    if "take" in item:
        if any(v is None for _, _, v in found):
            return [("", None, None)]
        numbers = [v for _, _, v in found]
        if item["take"] == "mean":
            return [(f"mean of {len(numbers)} cases", None, mean_of(numbers))]
        pick = {"min": min, "max": max}.get(item["take"])
        if not pick:
            raise Error(f"{item['id']}: take is mean, min or max, not `{item['take']}`")
        return [(item["take"], None, pick(numbers))]
    return found


def label(case):
    return ", ".join(str(v) for v in case["params"].values())


# -- verdicts ------------------------------------------------------------------------------------


def inside(value, band):
    """Whether the mean lies in the band and is known well enough to say so."""
    if value is None:
        return False
    mean, low, high = value
    if not band[0] <= mean <= band[1]:
        return False
    if float("-inf") in band or float("inf") in band:
        return band[0] <= low and high <= band[1]
    return high - low <= 2 * (band[1] - band[0]) + 1e-12


def band_of(item, published):
    if published is None:
        return limits(item["band"])
    within = item["within"]
    amount = float(within[:-1]) / 100 * abs(published) if isinstance(within, str) else within
    return published - amount, published + amount


def limits(band):
    low, high = band
    return (float("-inf") if low == "" else low), (float("inf") if high == "" else high)


def judge(item, seen):
    """(verdict, remark)."""
    if "not_applicable" in item:
        return "not applicable", item["not_applicable"]
    if "missing" in item:
        return "not reproduced", "not shown: " + item["missing"]
    ok = [inside(v, band_of(item, p)) for _, p, v in seen]
    difference = item.get("difference")
    if all(ok):
        return (VERDICTS[1], difference) if difference else (VERDICTS[0], "")
    if "ideal" in item and all(inside(v, limits(item["ideal"])) for _, _, v in seen):
        if not difference:
            raise Error(f"{item['id']}: outside the document's band and inside the closed form's:"
                        " `difference` has to say what differs")
        return VERDICTS[1], difference
    count = f"{sum(ok)} of {len(ok)} values in the band" if len(ok) > 1 else "outside the band"
    undecided = [v for (_, p, v), good in zip(seen, ok)
                 if not good and v and band_of(item, p)[0] <= v[0] <= band_of(item, p)[1]]
    if undecided:
        count = "the 95 % interval is too wide for the band"
    why = item.get("why") or difference
    return "not reproduced", count + (": " + why if why else "")


# -- the page ------------------------------------------------------------------------------------


def number(x):
    if x == float("-inf") or x == float("inf"):
        return "any"
    if x == 0:
        return "0"
    if abs(x) >= 1000:
        return f"{x:,.0f}"
    return f"{x:.7g}" if abs(x) < 1 and len(f"{x:.7g}") <= 9 else f"{x:.4g}"


def shown(value):
    if value is None:
        return "undefined"
    mean, low, high = map(number4, value)
    return mean if mean == low == high else f"{mean} [{low}, {high}]"


def number4(x):
    if abs(x) < 5e-5:
        return "0"
    if abs(x) >= 9999.5:
        return f"{x:,.0f}"
    return f"{x:.4g}" if abs(x) >= 1 else f"{x:.4f}"


def exact(value, band):
    """With as many digits as the band needs."""
    if value is None or band[1] - band[0] > 1e-4:
        return shown(value)
    return f"{value[0]:.7f}"


def band_text(band):
    low, high = band
    if low == float("-inf"):
        return f"at most {number(high)}"
    if high == float("inf"):
        return f"at least {number(low)}"
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def arguments(show, program):
    """Of the run that a value is divided by."""
    return program.arguments({**show, "set": show["over_set"]})


def command(show, program):
    if "law" in show:
        words = ["law", show["law"], "--window", str(show["window"]), "--rtt", show["rtt"]]
        return f"`fullpipe {' '.join(map(quoted, words))}`: {show['field']}"
    if "test" in show:
        return f"`cargo test -p {show['package']} --test it {show['test']}`"
    text = f"`fullpipe {' '.join(map(quoted, program.arguments(show)))}`"
    if "mean_of" in show:
        each = "`, `".join(" ".join(f"--set {quoted(s)}" for s in settings)
                           for settings in show["mean_of"])
        text += f" with `{each}`, mean"
    if "expectations" in show:
        names = show["expectations"]
        return text + ": " + ("its expectations" if names is True else "; ".join(names))
    picked = [f"{'/'.join(map(str, v)) if isinstance(v, list) else v}"
              for v in show.get("case", {}).values()]
    text += f": {show['metric']}" + (f" of {show['of']}" if "of" in show else "")
    if "seeds" in show:
        text += f", {' over '.join(show['seeds'])} of the seeds"
    if picked:
        text += f" at {'; '.join(picked)}"
    if "over" in show:
        other = "; ".join(map(str, show["over"].values()))
        text += f" over {show.get('over_metric', 'that')} at {other}"
        if "over_set" in show:
            text += f" of `fullpipe {' '.join(map(quoted, arguments(show, program)))}`"
    if "less" in show:
        text += f" less that at {'; '.join(map(str, show['less'].values()))}"
    return text


def row(item, program, page=None):
    """What the page says of an item; `page` is the page so far, for a result that is not kept."""
    stands = None
    try:
        seen = values(item, program) if "show" in item else []
    except NotKept as missing:
        stands = Standing(item, program, page, missing)
        seen = stands.seen
    verdict, remark = judge(item, seen)
    if stands:
        verdict, remark = stands.limited(verdict, remark)
    if not seen:
        shows, value, accepted = "", "", ""
    elif stands and "cells" not in item:
        shows, value, accepted = stands.shows, stands.value, bounds(item)
    else:
        shows = command(item["show"], program)
        if "test" in item["show"]:
            value = "passes" if seen[0][2][0] else "fails"
        elif len(seen) == 1:
            value = exact(seen[0][2], band_of(item, seen[0][1]))
        elif "cells" in item:
            good = sum(inside(v, band_of(item, p)) for _, p, v in seen)
            value = f"{len(seen)} cells, {good} in the band, below"
        else:
            means = [v[0] for _, _, v in seen if v]
            value = f"{number4(min(means))} to {number4(max(means))} ({len(seen)} cases)" \
                if means else "undefined"
        accepted = bounds(item)
        if "expectations" in item["show"]:
            value = "all hold" if seen[0][2][0] == 1 else f"{seen[0][2][0]:.0%} hold"
        if item.get("unit"):
            value += f" {item['unit']}"
    return {"item": item, "seen": seen, "verdict": verdict, "remark": remark, "shows": shows,
            "value": value, "accepted": accepted}


NUMBER = r"-?[\d,]*\.?\d+(?:e[-+]?\d+)?"
VALUE = re.compile(rf"({NUMBER})(?: \[({NUMBER}), ({NUMBER})\])?(?: (?!to\b)[^\d\[].*)?")
SEVERAL = re.compile(rf"({NUMBER}) to ({NUMBER}) \(\d+ cases\)(?: .*)?")


def read_number(text):
    return float(text.replace(",", ""))


def read_value(text):
    """(mean, low, high) as `shown` writes them; None for an undefined value."""
    found = VALUE.fullmatch(text)
    if text.startswith("undefined"):
        return None
    if not found:
        raise Error(f"the page has a value that cannot be read: `{text}`")
    mean, low, high = (g and read_number(g) for g in found.groups())
    return (mean, mean, mean) if low is None else (mean, low, high)


class Standing:
    """What the page shows of an item: its row, and its values read back from it."""

    def __init__(self, item, program, page, missing):
        lines = (page or "").split("\n")
        found = [l for l in lines if l.startswith(f"| `{item['id']}` |")]
        self.shows = command(item["show"], program)
        if not found or f"| {cell(self.shows)} |" not in found[0]:
            raise Error(f"{item['id']}: neither kept nor on the page: `{missing}`")
        _, _, _, self.value, accepted, last = found[0].removesuffix(" |").split(" | ")
        self.verdict, _, self.remark = last.removeprefix("**").partition("**")
        self.remark = self.remark.removeprefix(": ")
        self.partly = bool(SEVERAL.fullmatch(self.value))
        if self.partly and cell(bounds(item)) != accepted:
            raise Error(f"{item['id']}: neither kept nor on the page, which has the ends of several "
                        f"cases alone, is what another band needs: `{missing}`")
        self.seen = self.cells(item, lines) if "cells" in item else self.values(item["show"])
        if "run" in item["show"]:
            program.standing.add(item["show"]["run"])

    def values(self, show):
        """Of several cases the page has the least and the largest mean alone."""
        if "test" in show:
            return [("", None, (float(self.value == "passes"),) * 3)]
        if "expectations" in show:
            part = 1 if self.value == "all hold" else read_number(self.value.split("%")[0]) / 100
            return [("", None, (part,) * 3)]
        if self.partly:
            ends = map(read_number, SEVERAL.fullmatch(self.value).groups())
            return [("", None, (v, v, v)) for v in ends]
        return [("", None, read_value(self.value))]

    def cells(self, item, lines):
        start = lines.index(f"Cells of `{item['id']}`:") + 4
        end = next(i for i in range(start, len(lines)) if not lines[i].startswith("|"))
        out = []
        for line in lines[start:end]:
            name, _, value, _ = line.removeprefix("| ").removesuffix(" |").split(" | ")
            out.append((name, value))
        for (_, wanted), (name, _) in itertools.zip_longest(item["cells"], out, fillvalue=("", "")):
            if wanted == "" or any(str(v) not in name for v in wanted.values()):
                raise Error(f"{item['id']}: neither kept nor on the page: the cell {wanted or name}")
        return [(name, published, read_value(value))
                for (published, _), (name, value) in zip(item["cells"], out)]

    def limited(self, verdict, remark):
        """A verdict on two of several cases is no better than that of all of them."""
        if self.partly and self.verdict == VERDICTS[2]:
            return self.verdict, self.remark
        return verdict, remark


def bounds(item):
    """What counts as reproduced, in words."""
    if "cells" in item:
        text = f"each within {item['within']}"
    elif "test" in item["show"] or "expectations" in item["show"]:
        text = "yes"
    else:
        text = band_text(limits(item["band"]))
    text += f" ({item['band_from']})"
    if "ideal" in item:
        text += f"; closed form {band_text(limits(item['ideal']))} ({item['ideal_from']})"
    return text


def cell(text):
    return " ".join(text.split()).replace("|", "\\|")


def table(document, rows):
    out = ["| item | claim | shown by | seen | counts as reproduced | verdict |",
           "|---|---|---|---|---|---|"]
    for r in rows:
        item = r["item"]
        verdict = f"**{r['verdict']}**" + (f": {r['remark']}" if r["remark"] else "")
        out.append("| " + " | ".join(map(cell, [
            f"`{item['id']}`", f"{item['claim']} ({item['where']})", r["shows"], r["value"],
            r["accepted"], verdict])) + " |")
    for r in rows:
        if "cells" not in r["item"]:
            continue
        out += ["", f"Cells of `{r['item']['id']}`:", "",
                "| case | published | seen | in the band |", "|---|---|---|---|"]
        for name, published, value in r["seen"]:
            good = "yes" if inside(value, band_of(r["item"], published)) else "no"
            out.append(f"| {cell(name)} | {published} | {shown(value)} | {good} |")
        rho = rank_correlation(pairs_of(r))
        if rho is not None:
            out += ["", f"Spearman's rank correlation of published and seen: {rho:.2f}."]
    return out


def rank_lines(document, rows):
    """Printed and seen values of whole tables, by rank."""
    if not document.get("rank"):
        return []
    lines = ["", "Rank correlation (Spearman) of what is printed and what is seen, whole tables:", "",
             "| table | values | correlation |", "|---|---|---|"]
    by_id = {r["item"]["id"]: r for r in rows}
    for rank in document["rank"]:
        unknown = [i for i in rank["items"] if i not in by_id]
        if unknown:
            raise Error(f"rank `{rank['about']}`: no item `{unknown[0]}`")
        pairs = [pair for i in rank["items"] for pair in pairs_of(by_id[i])]
        rho = rank_correlation(pairs)
        lines.append(f"| {cell(rank['about'])} | {len(pairs)} | {rho:.2f} |")
    return lines


def pairs_of(row):
    """(printed, seen as the page shows it) of an item's values."""
    item = row["item"]
    if "cells" not in item and "published" not in item:
        raise Error(f"{item['id']}: a rank needs `cells` or `published`")
    return [(item.get("published", p), read_value(shown(v))[0])
            for _, p, v in row["seen"] if v is not None]


def cause_lines(claims, causes, verdicts, program, on_page=""):
    """What was switched where a claim is not reproduced, and how much of the gap that closes."""
    lines = ["## What keeps the rest from the documents", ""]
    lines += textwrap.wrap(
        "Of each claim that is not reproduced: what was suspected, and what became of the number when "
        "that alone was switched. Gap: the part of the way from the value as it is to the printed one "
        "that the switch goes. Nothing here is fitted: a switch is on or off, and no row of the page "
        "uses one. What it shows is computed from the gap:", 100)
    lines += [""]
    for _, word, meaning in GRADES:
        lines += textwrap.wrap(f"- *{word}*: {meaning}", 100, subsequent_indent="  ")
    lines += textwrap.wrap(f"- *{UNCLEAR}*: the 95 % intervals of both values let the gap reach over "
                           "a whole grade", 100, subsequent_indent="  ")
    lines += ["", "| claim | suspected | as it is | switched | printed | gap | the switch |",
              "|---|---|---|---|---|---|---|"]
    for claim in claims:
        if judge_claim(claim, verdicts) != VERDICTS[2]:
            if any(c["claim"] == claim["claim"] for c in causes):
                raise Error(f"`{claim['claim']}` is reproduced, and published/causes.toml has a "
                            "cause why it is not: remove it")
            continue
        mine = [c for c in causes if c["claim"] == claim["claim"]]
        if not mine:
            raise Error(f"`{claim['claim']}` is not reproduced, and published/causes.toml says "
                        "nothing of it")
        for cause in mine:
            start = f"| {cell(claim['claim'])} | {cell(cause['what'])} | "
            if "untested" in cause:
                lines.append(f"{start}not tested: {cell(cause['untested'])} | | | | |")
                continue
            here, there = (one(cause, key, program, on_page, start) for key in ("here", "switched"))
            goal = cause["published"]
            goal = limits(goal) if isinstance(goal, list) else (goal, goal)
            gap = gap_closed(cause["what"], here[1], there[1], goal)
            lines.append(f"{start}{here[0]} | {there[0]} | {band_text(goal)} | {round(100 * gap[0])}% | "
                         f"{grade(gap)} |")
    return lines


def one(cause, key, program, on_page, start):
    """(cell of the page, value in it) of one side of a cause."""
    show = cause[key]
    text = cell(command(show, program))
    try:
        found = values({"id": cause["what"], "show": show}, program)
        if len(found) != 1 or found[0][2] is None:
            raise Error(f"cause `{cause['what']}`: needs one value, has {len(found)}")
        text += f": {shown(found[0][2])}"
    except NotKept as missing:
        line = next((l for l in on_page.split("\n") if l.startswith(start)), start + " | | ")
        text = line.split(" | ")[{"here": 2, "switched": 3}[key]]
        if not text.startswith(cell(command(show, program)) + ": "):
            raise Error(f"cause `{cause['what']}`: neither kept nor on the page: `{missing}`")
        program.standing.add(show["run"])
    # As the page shows it, so that readers can compute the gap themselves.
    return text, read_value(text.rpartition(": ")[2])


def gap_closed(what, here, there, goal):
    """The part of the way to the printed number, and the ends of its 95 % interval."""
    if goal[0] <= here[2] and here[1] <= goal[1]:
        raise Error(f"cause `{what}`: the value as it is, {shown(here)}, is as printed: remove it")
    moved = difference(there, here)
    parts = [to / (min(max(here[0] + to, goal[0]), goal[1]) - here[0]) for to in moved]
    return parts[0], *sorted(parts[1:])


def grade(gap):
    """What a switch shows, in a word."""
    at, low, high = (sum(v >= least for least, _, _ in GRADES) - 1 for v in gap)
    return UNCLEAR if high - low > 1 else GRADES[at][1]


def rank_correlation(pairs):
    """Spearman's rho of pairs, ties at their mean rank; None below three or if all are equal."""
    if len(pairs) < 3:
        return None
    xs, ys = (ranks(column) for column in zip(*pairs))
    mean = (len(pairs) - 1) / 2
    spread = sum((x - mean) ** 2 for x in xs) * sum((y - mean) ** 2 for y in ys)
    if spread == 0:
        return None
    return sum((x - mean) * (y - mean) for x, y in zip(xs, ys)) / spread ** 0.5


def ranks(values):
    order = sorted(values)
    return [order.index(v) + (order.count(v) - 1) / 2 for v in values]


def judge_claim(claim, verdicts):
    """The worst verdict of its items; not applicable only if all are."""
    found = [verdicts[i] for i in claim["items"] if verdicts[i] != VERDICTS[3]]
    return max(found, key=VERDICTS.index) if found else VERDICTS[3]


def counted(documents, of):
    """Table of verdicts per document; `of` gives a document's verdicts."""
    lines = ["| document | " + " | ".join(VERDICTS) + " | all |", "|---|" + "---|" * 5]
    total = dict.fromkeys(VERDICTS, 0)
    for d in documents:
        found = of(d)
        counts = {v: found.count(v) for v in VERDICTS}
        for v in VERDICTS:
            total[v] += counts[v]
        numbers = " | ".join(str(counts[v]) for v in VERDICTS)
        lines.append(f"| {cell(d['title'])} | {numbers} | {len(found)} |")
    numbers = " | ".join(f"**{total[v]}**" for v in VERDICTS)
    return lines + [f"| **all** | {numbers} | **{sum(total.values())}** |", ""]


def claims_of(document, claims, judged, verdicts):
    """Table of a document's claims."""
    why = {r["item"]["id"]: r["remark"] for r in judged[document["key"]]}
    lines = ["| claim | shown by | verdict |", "|---|---|---|"]
    for claim in claims:
        if claim["document"] != document["key"]:
            continue
        verdict = judge_claim(claim, verdicts)
        worst = [i for i in claim["items"] if verdicts[i] == verdict]
        shown_by = ", ".join(f"`{i}`" for i in claim["items"])
        if len(claim["items"]) > 8:
            shown_by = f"{len(claim['items'])} items, `{claim['items'][0]}` the first"
        text = f"**{verdict}**"
        if verdict != VERDICTS[0]:
            named = ", ".join(f"`{i}`" for i in worst[:4]) + (" ..." if len(worst) > 4 else "")
            text += f": {len(worst)} of {len(claim['items'])}, {named}" \
                if len(claim["items"]) > 1 else f": {why.get(worst[0], '')}"
        lines.append(f"| {cell(claim['claim'])} | {shown_by} | {cell(text)} |")
    return lines


def page(documents, claims, causes, judged, program, on_page=""):
    lines = ["# Published numbers, one by one", ""]
    lines += textwrap.wrap(
        "Every number, table and figure claim of five documents, the command that shows it, the "
        "value seen with its 95 % interval over seeds, and a verdict. Written by "
        "`scripts/published.py` from `published/*.toml`: the verdicts are computed, the bands come "
        "from the documents or from closed forms, though earlier results were known when they were "
        "chosen. No plot of the documents was available, only "
        "their text; figures are held against what the text says of them.", 100)
    lines += ["", *textwrap.wrap(
        "*reproduced*: each value lies in the band. *with a stated difference*: it lies in the "
        "document's band or in the closed form's, and the sentence says what differs. *not "
        "reproduced*: anything else, also where no scenario shows it, where the 95 % interval is "
        "over twice as wide as the band, or where it reaches past the only end of a band. *not "
        "applicable*: the claim is about something outside of fullpipe. A value without an "
        "interval comes from one seed; what one seed of a short run shows of a random path is weak "
        "evidence (see Runs).", 100), ""]
    verdicts = {r["item"]["id"]: r["verdict"] for rows in judged.values() for r in rows}
    lines += ["## Claims", ""]
    lines += textwrap.wrap(
        f"The {len(claims)} claims of the documents. A claim is as good as the worst of the items "
        "that show it, so that one cell of a table outside its band makes the whole table not "
        "reproduced; what is not applicable counts only where a claim has nothing else.", 100)
    lines += [""] + counted(documents, lambda d: [
        judge_claim(c, verdicts) for c in claims if c["document"] == d["key"]])
    if causes:
        lines += cause_lines(claims, causes, verdicts, program, on_page) + [""]
    lines += ["## Items", ""]
    lines += textwrap.wrap("The numbers, cells and sentences that the claims consist of.", 100)
    lines += [""] + counted(documents, lambda d: [r["verdict"] for r in judged[d["key"]]])
    lines += ["## Runs", "", "| scenario | settings | seeds | program |", "|---|---|---|---|"]
    stand = program.standing - set(program.used)
    before = {m[1]: m for m in map(RUN.match, on_page.split("\n")) if m}
    missing = stand - set(before)
    if missing:
        raise Error(f"the page has values of `{min(missing)}`, and Runs does not name it")
    for name in sorted(stand | set(program.used)):
        mode = "quick" if program.is_quick(name) else "full"
        mode += "".join(f", {s}" for s in sorted(program.sets.get(name, [])))
        if name in stand:
            count, build = before[name][3], before[name][4]
        else:
            count = {len(c["seeds"]) for c in program.used[name]["cases"]}
            count = "/".join(map(str, sorted(count)))
            build = program.builds.get(name, "")[:8]
        lines.append(f"| `{name}` | {mode} | {count} | {build} |")
    lines += ["", *textwrap.wrap(
        "program: the first digits of the SHA-256 of the fullpipe that ran, or the commit it was "
        "built from. quick: the scenario's [quick] settings, much shorter and with fewer seeds.",
        100)]
    for d in documents:
        lines += ["", f"## {d['title']}", "", *textwrap.wrap(d["source"], 100), ""]
        lines += claims_of(d, claims, judged, verdicts) + [""]
        lines += table(d, judged[d["key"]])
        lines += rank_lines(d, judged[d["key"]])
    return "\n".join(lines) + "\n"


ROW = re.compile(r"^\| `([^`]+)` \|.*\| \*\*([a-z ]+)\*\*[^|]*\|$")
RUN = re.compile(r"^\| `([^`]+)` \| (quick|full)(?:,.*)? \| ([\d/]+) \| (\w*) \|$")


def verdicts_on(text):
    return {m[1]: m[2] for m in map(ROW.match, text.replace("\\|", "/").split("\n")) if m}


def quick_on(text):
    return {m[1] for m in map(RUN.match, text.split("\n")) if m and m[2] == "quick"}


def compare(old, new):
    """Differences of verdict between two pages, one per line."""
    a, b = verdicts_on(old), verdicts_on(new)
    out = [f"{i}: the page says `{a[i]}`, now `{b[i]}`" for i in a if i in b and a[i] != b[i]]
    out += [f"{i}: not on the page, now `{b[i]}`" for i in b if i not in a]
    out += [f"{i}: on the page, but no longer an item" for i in a if i not in b]
    return out


def sentence(text):
    """What README says of the page."""
    counts = re.search(r"^\| \*\*all\*\* \|(.*)\|$", text, re.MULTILINE)[1]
    good, differs, bad, other, n = (c.strip(" *") for c in counts.split("|"))
    return (f"Of {n} claims {good} are, {differs} with a stated difference, {bad} are not, and "
            f"{other} do not apply.")


def check(on_page, text, readme):
    """1 if the page, or README, is not what the page's numbers and the data make of it."""
    lines = list(difflib.unified_diff(on_page.split("\n"), text.split("\n"), "the page",
                                      "what its numbers and published/*.toml say", lineterm="", n=0))
    for line in lines[:40]:
        print(f"published: {line[:300]}", file=sys.stderr)
    if lines:
        print("published: correct with scripts/published.py --as-it-stands, or run the programs "
              "anew: scripts/published.py", file=sys.stderr)
    gone = sentence(text) not in " ".join(readme.split())
    if gone:
        print(f"published: README.md has to say: {sentence(text)}", file=sys.stderr)
    return 1 if lines or gone else 0


def find_program():
    for name in ["release", "quick", "debug"]:
        path = ROOT / "target" / name / "fullpipe"
        if path.exists():
            return path
    raise Error("no fullpipe in target/: cargo build --release, or --fullpipe FILE")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fullpipe", help="program [target/release, quick or debug]")
    parser.add_argument("--cache", default=str(ROOT / "fullpipe-out" / "published"))
    parser.add_argument("--nice", type=int, default=0)
    parser.add_argument("--quick", nargs="*", metavar="NAME")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--any-program", action="store_true")
    parser.add_argument("--as-it-stands", action="store_true")
    parser.add_argument("--only", metavar="DOCUMENT")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--again", action="store_true")
    args = parser.parse_args()
    on_page = (ROOT / PAGE).read_text() if (ROOT / PAGE).exists() else ""
    stands = args.check or args.as_it_stands
    quick = quick_on(on_page) if stands or args.again else set(args.quick or [])
    if args.quick == []:
        quick = "all"
    path = None if stands else os.path.abspath(args.fullpipe or find_program())
    program = Program(path, args.cache, args.nice, quick,
                      args.keep, args.any_program)
    program.frozen, program.blank = stands, args.check
    program.any_program |= stands
    documents = load(ROOT / "published")
    claims = load_claims(ROOT / "published" / "claims.toml", documents)
    causes = load_causes(ROOT / "published" / "causes.toml", claims)
    if args.only:
        names = [d["key"] for d in documents]
        documents = [d for d in documents if d["key"] == args.only]
        claims = causes = []
        if not documents:
            raise Error(f"no document `{args.only}`; there are {', '.join(names)}")
    judged = {d["key"]: [row(i, program, on_page) for i in d["item"]] for d in documents}
    text = page(documents, claims, causes, judged, program, on_page)
    if args.only:
        print(text)
        return 0
    if args.check:
        return check(on_page, text, (ROOT / "README.md").read_text())
    if args.again:
        wrong = compare(on_page, text)
        for line in wrong:
            print(f"published: {line}", file=sys.stderr)
        if not wrong and text != on_page:
            print("published: verdicts hold, values moved inside their bands: write the page anew",
                  file=sys.stderr)
        return 1 if wrong else 0
    (ROOT / PAGE).write_text(text)
    for r in (r for d in documents for r in judged[d["key"]] if r["verdict"] == "not reproduced"):
        print(f"{r['item']['id']}: {r['remark']} ({r['value']})", file=sys.stderr)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Error as e:
        print(f"published: {e}", file=sys.stderr)
        sys.exit(2)
