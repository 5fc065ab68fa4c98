"""What a value says of its band, a switch of a gap, items of a claim."""

from .items import Error, UNCLEAR, VERDICTS
from .measured import difference, values
from .wording import band_text, shown

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
