#!/usr/bin/env python3
"""Attacks on `fullpipe serve` and its clients, with a program that is not fullpipe's.

    run.py [--only WORD] [--skip WORD]

FULLPIPE names the program, otherwise it is looked for on the PATH. Prints a table; ends with 1 if
a defence did not hold. Some attacks need root, for raw sockets, namespaces or a disk of their own:
they are skipped without. It needs the packages of ../requirements.txt.
"""

import argparse
import pathlib
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import files  # noqa: F401
import paths  # noqa: F401
import peers  # noqa: F401
import servers  # noqa: F401
import strangers  # noqa: F401
import trees  # noqa: F401
from harness import ATTACKS, Skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", help="those with this word in their name", action="append")
    parser.add_argument("--skip", help="not those", action="append", default=[])
    args = parser.parse_args()
    print("| attack | | wire format 1 | now | held |\n|---|---|---|---|---|", flush=True)
    broken = 0
    for script, what, before, run in ATTACKS:
        name = f"{script} {run.__name__}"
        if args.only and not any(word in name for word in args.only):
            continue
        if any(word in name for word in args.skip):
            continue
        begin = time.monotonic()
        try:
            seen, held = run()
        except (Skipped, PermissionError) as why:
            print(f"| {script} | {what} | {before} | skipped: {why} | |", flush=True)
            continue
        except Exception:
            seen, held = traceback.format_exc().strip().replace("\n", " / "), False
        broken += not held
        seen = ascii(seen)[1:-1].replace("|", "/")
        lasted = time.monotonic() - begin
        held = "yes" if held else "NO"
        print(f"| {script} | {what} | {before} | {seen} ({lasted:.0f} s) | {held} |", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
