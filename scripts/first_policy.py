#!/usr/bin/env python3
"""Execute the commands of docs/first-policy.md, and hold their output against the page.

usage: first_policy.py [--update] PROGRAM

Like first_ten_minutes.py: two hosts are two network namespaces inside namespaces of this script's
own, the path between them is emulated, and the folders in which something is installed are this
script's alone. The tuner sees flows of its own namespace and no others. Needs root, iperf3,
iproute2, nsenter(1), sysctl(8), and a program with the tuner; says "skipped" without. Numbers may
differ from the page; words and exit codes may not. --update writes the page anew. Two and a half minutes.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import first_ten_minutes
from first_ten_minutes import Hosts, execute

PAGE = Path(__file__).resolve().parent.parent / "docs" / "first-policy.md"
# An administrator may have to wait for an experiment.
first_ten_minutes.LONGEST = 90


class Administrators(Hosts):
    """Hosts on which nothing is installed yet: the program lies where `root` has built it."""

    of_the_moment = ("-----", "   ", "[", "198.18.")

    def __init__(self, top: Path, program: str) -> None:
        super().__init__(top, program)
        self.path = os.environ["PATH"]
        built = top / "root" / "target" / "release"
        built.mkdir(parents=True)
        shutil.copy(program, built / "fullpipe")

    def on(self, host: str, line: list[str]) -> list[str]:
        # `ip netns exec` hides control groups.
        return line if host == "root" else ["nsenter", f"--net=/run/netns/{host}", "--", *line]

    def run(self, host: str, command: str) -> tuple[int, str]:
        if command.startswith("wait %"):
            self.jobs[host][int(command.removeprefix("wait %")) - 1].wait(timeout=90)
            return 0, ""
        # As a shell numbers them: the first one that still runs is %1.
        self.jobs[host] = [job for job in self.jobs[host] if job.poll() is None]
        if command == "kill -INT %1":
            self.jobs[host].reverse()
        if command.endswith(" > /dev/null &"):
            words = self.on(host, ["sh", "-c", f"exec {command.removesuffix('&')}"])
            self.jobs[host].append(subprocess.Popen(words, cwd=self.top / host))
            return 0, ""
        return super().run(host, command)

    def first(self, command: str, job: subprocess.Popen) -> str:
        if "tune run" not in command:
            return super().first(command, job)
        said = []
        while not said or said[-1] not in ("ready\n", ""):
            said.append(job.stdout.readline())
        if not said[-1]:
            raise SystemExit(f"`{command}` has ended: {''.join(said)}")
        return "".join(said)


def main() -> int:
    arguments = [a for a in sys.argv[1:] if a != "--update"]
    update = "--update" in sys.argv
    if len(arguments) != 1:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    if os.environ.get("FIRST_POLICY") != "inside":
        tools = ["unshare", "nsenter", "ip", "tc", "mount", "iperf3", "sysctl"]
        lacks = [tool for tool in tools if not shutil.which(tool)]
        asked = subprocess.run([arguments[0], "tune", "status", "--state", "/nowhere"],
                               capture_output=True, text=True)
        if "no tuner listens" not in asked.stderr:
            lacks.append("the tuner in the program")
        if os.geteuid() != 0:
            lacks.append("root")
        if lacks:
            print(f"skipped: lacking {', '.join(lacks)}")
            return 0
        own = ("mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /usr/local/bin && "
               "exec \"$0\" \"$@\"")
        inner = ["unshare", "--net", "--mount", "sh", "-c", own, sys.executable, "-B", *sys.argv]
        return subprocess.run(inner, env={**os.environ, "FIRST_POLICY": "inside"}).returncode
    began = time.monotonic()
    code = execute(PAGE, str(Path(arguments[0]).resolve()), update, Administrators)
    print(f"{PAGE.name}: {time.monotonic() - began:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
