"""The page read back: verdicts, values, and rows that stand without a result."""

import itertools
import re

from .items import Error, VERDICTS
from .verdicts import bounds
from .wording import cell, command

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

ROW = re.compile(r"^\| `([^`]+)` \|.*\| \*\*([a-z ]+)\*\*[^|]*\|$")
RUN = re.compile(r"^\| `([^`]+)` \| (quick|full)(?:,.*)? \| ([\d/]+) \| (\w*) \|$")


def verdicts_on(text):
    return {m[1]: m[2] for m in map(ROW.match, text.replace("\\|", "/").split("\n")) if m}


def quick_on(text):
    return {m[1] for m in map(RUN.match, text.split("\n")) if m and m[2] == "quick"}
