"""Numbers, bands and commands as the page writes them."""

from .program import quoted


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


def cell(text):
    return " ".join(text.split()).replace("|", "\\|")
