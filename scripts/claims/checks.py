"""What changed between two pages, and whether one says what its own numbers say."""

import difflib
import re
import sys

from .reading import verdicts_on


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
