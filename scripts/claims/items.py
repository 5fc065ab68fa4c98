"""Claims, causes and documents as `published/*.toml` has them."""

import pathlib
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
UNCLEAR = "unclear"
VERDICTS = ["reproduced", "with a stated difference", "not reproduced", "not applicable"]
KEYS = {
    "id", "where", "claim", "show", "band", "band_from", "ideal", "ideal_from", "difference",
    "cells", "within", "unit", "take", "missing", "not_applicable", "why", "published",
}


class Error(Exception):
    """Something in the items, or a run, that a person has to mend."""


def parsed(path):
    """A file of TOML; what is wrong with it names it."""
    with open(path, "rb") as f:
        try:
            return tomllib.load(f)
        except tomllib.TOMLDecodeError as e:
            raise Error(f"{path}: {e}")


def load(folder):
    """The documents, each with its items checked for form."""
    documents, seen = [], set()
    for path in sorted(pathlib.Path(folder).glob("*.toml")):
        if path.name in ("claims.toml", "causes.toml"):
            continue
        document = parsed(path)
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
    claims = parsed(path)["claim"]
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
    causes = parsed(path)["cause"]
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
