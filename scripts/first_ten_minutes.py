#!/usr/bin/env python3
"""Execute the commands of docs/first-ten-minutes.md, and hold their output against the page.

usage: first_ten_minutes.py [--update] PROGRAM

Two hosts are two network namespaces inside namespaces of this script's own, so nothing of the
machine is touched. Needs root, iproute2 and the tbf queueing discipline; says "skipped" without.
Numbers may differ from the page; words and exit codes may not. --update writes the page anew.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "first-ten-minutes.md"
PROMPT = re.compile(r"^(root|host-a|host-b)([#$]) (.*)$")
# A block that is a file of host-a.
TITLED = re.compile(r"^```\w+ title=\"([^\"]+)\"$")
# Lines that depend on how busy this machine is.
OF_THE_MOMENT = ("NOT VALID", "warning: server", "test bed", "stack ", "cubic ", "-----", "   ")
LONGEST = 60


def shape(line: str) -> str:
    """The line without numbers, digests and widths of columns."""
    line = re.sub(r"\b[0-9a-f]{16,}\b", "H", line)
    line = re.sub(r"[-+]?[0-9][0-9,.]*(e[-+]?[0-9]+)?", "N", line)
    line = re.sub(r"-{3,}", "-", line)
    return " ".join(line.split())


class Hosts:
    """Two hosts, each with a directory and background jobs of its own."""

    of_the_moment = OF_THE_MOMENT

    def __init__(self, top: Path, program: str) -> None:
        self.top = top
        self.jobs: dict[str, list[subprocess.Popen]] = {"host-a": [], "host-b": [], "root": []}
        binaries = top / "bin"
        binaries.mkdir()
        (binaries / "fullpipe").symlink_to(Path(program).resolve())
        for host in self.jobs:
            (top / host).mkdir()
        self.path = f"{binaries}:{os.environ['PATH']}"

    def on(self, host: str, line: list[str]) -> list[str]:
        return line if host == "root" else ["ip", "netns", "exec", host, *line]

    def run(self, host: str, command: str) -> tuple[int, str]:
        home = self.top / host
        (home / ".state").mkdir(exist_ok=True)
        environment = {"PATH": self.path, "HOME": str(home), "LANG": "C.UTF-8"}
        line = self.on(host, ["sh", "-c", command.removesuffix("&").strip()])
        if command == "kill -INT %1":
            # Sessions of clients that left just now still end; nobody types as fast.
            time.sleep(0.5)
            job = self.jobs[host].pop()
            job.terminate()
            # What it has logged of every test is no part of the page.
            log = job.communicate(timeout=LONGEST)[0].split("\n")
            return 0, "\n".join(log[-3:])
        if command.endswith("&"):
            job = subprocess.Popen(
                self.on(host, shlex.split(command.removesuffix("&"))),
                cwd=home, env=environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.jobs[host].append(job)
            return 0, self.first(command, job)
        ended = subprocess.run(line, cwd=home, env=environment, text=True, timeout=LONGEST,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return ended.returncode, ended.stdout

    def first(self, _command: str, job: subprocess.Popen) -> str:
        """What a job says before the next command is typed."""
        return job.stdout.readline()

    def end(self) -> None:
        for job in sum(self.jobs.values(), []):
            job.kill()
            job.wait()


def execute(page: Path, program: str, update: bool, kind: type[Hosts] = Hosts) -> int:
    wrong, out, lines = [], [], page.read_text().split("\n")
    with tempfile.TemporaryDirectory() as top:
        hosts = kind(Path(top), program)
        try:
            index, inside = 0, False
            while index < len(lines):
                line = lines[index]
                index += 1
                out.append(line)
                if line.startswith("```"):
                    inside = line == "```console"
                if titled := TITLED.match(line):
                    rest = lines[index : lines.index("```", index)]
                    (hosts.top / "host-a" / titled[1]).write_text("\n".join(rest) + "\n")
                met = PROMPT.match(line) if inside else None
                if not met:
                    continue
                host, _, command = met.groups()
                said = []
                while not PROMPT.match(lines[index]) and not lines[index].startswith("```"):
                    said.append(lines[index])
                    index += 1
                command, _, remark = command.partition("   # exit code ")
                code, text = hosts.run(host, command)
                rows = [row.split("\r")[-1].rstrip() for row in text.splitlines()]
                text = "\n".join(rows).strip("\n")
                if code != int(remark or 0):
                    wrong.append(f"`{command}`: exit code {code}\n{text}")
                there = {shape(row) for row in text.split("\n")}
                for row in said:
                    is_fixed = not row.startswith(hosts.of_the_moment) and not row.endswith("…")
                    if is_fixed and shape(row) not in there:
                        wrong.append(f"`{command}` does not say\n  {row}\nbut\n{text}")
                if said and said.count("") != text.split("\n").count(""):
                    wrong.append(f"`{command}` has other blank lines:\n{text}")
                fresh = text.split("\n") if text else []
                fresh = [row if len(row) < 180 else row[:179] + "…" for row in fresh]
                out.extend(fresh if update else said)
        finally:
            hosts.end()
    if update:
        page.write_text("\n".join(out))
        wrong = [what for what in wrong if "exit code" in what]
    for what in wrong:
        print(what)
    return 1 if wrong else 0


def main() -> int:
    arguments = [a for a in sys.argv[1:] if a != "--update"]
    update = "--update" in sys.argv
    if len(arguments) != 1:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    if os.environ.get("FIRST_TEN_MINUTES") != "inside":
        tools = all(shutil.which(tool) for tool in ["unshare", "ip", "tc", "mount"])
        probe = ("mount -t tmpfs tmpfs /run && ip link set lo up && "
                 "tc qdisc add dev lo root tbf rate 1mbit burst 32kb latency 50ms")
        inner = ["unshare", "--net", "--mount", "sh", "-c"]
        if not tools or subprocess.run([*inner, probe], capture_output=True).returncode != 0:
            print("skipped: network namespaces with tbf need root and iproute2")
            return 0
        again = ["mount -t tmpfs tmpfs /run && exec \"$0\" \"$@\"", sys.executable, *sys.argv]
        return subprocess.run([*inner, *again],
                              env={**os.environ, "FIRST_TEN_MINUTES": "inside"}).returncode
    began = time.monotonic()
    code = execute(PAGE, arguments[0], update)
    print(f"{PAGE.name}: {time.monotonic() - began:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
