"""What a result says of an item: its values, over cases and seeds."""

from .items import Error


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
