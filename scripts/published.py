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
import os
import sys

from claims.checks import check, compare
from claims.items import Error, ROOT, load, load_causes, load_claims
from claims.page import PAGE, page, row
from claims.program import Program
from claims.reading import quick_on


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
