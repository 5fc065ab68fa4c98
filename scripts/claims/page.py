"""docs/published.md."""

import textwrap

from .items import Error, UNCLEAR, VERDICTS
from .measured import values
from .program import NotKept
from .reading import RUN, Standing, read_value
from .verdicts import (
    GRADES, band_of, bounds, gap_closed, grade, inside, judge, judge_claim, limits,
    rank_correlation,
)
from .wording import band_text, cell, command, exact, number4, shown

PAGE = "docs/published.md"


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
