#!/usr/bin/env python3
"""What rustfmt and clippy do not see: layout of prose, empty comments, dead pointers, circles.

    scripts/lint.py [--lower] [CHECK ...]     CHECK: width filler pointer circle (default: all)

width    No line over 100 columns in comments (*.rs, *.ts, *.py, *.sh, *.lua, *.c, Makefile) and in prose
         (*.md, *.toml). Exempt: rows of tables, fenced blocks, lines that are one word (a URL, a link), `key = value` in TOML, and the files
         in GENERATED.
filler   No doc comment that names nothing: `/// Of what.`, `/// See above.`, `/// Its key.`, and no
         clause of five or six words that only begins a sentence: `/// What is wrong with it.` A
         number, a unit (`/// In bytes.`, or after a comma), an RFC or code in it is something.
pointer  No mention of a document that is not in the repository.
circle   No circle of `use` between files of different folders of one crate. A file x.rs or x/mod.rs
         with submodules counts as part of folder x. Unit tests are left out.

scripts/lint-allow.txt lists what older code still has, as `CHECK FOLDER COUNT`. A count above the
list fails; `--lower` writes lower counts back and never raises one.
"""

import os
import re
import subprocess
import sys
from collections import defaultdict, deque

WIDTH = 100
SHOWN = 30  # messages of one check in one folder
ROOT = subprocess.run(
    ["git", "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=True
).stdout.strip()
ALLOW = "scripts/lint-allow.txt"

# Written by a program or recorded from one; the program's own source is checked instead.
GENERATED = [
    r"^docs/(mutants|published)\.md$",
    r"^bench/(udp-)?results\.md$",
    r"^crates/[^/]+/assets/",
    r"^web/src/(generated|types)/",
    r"^calibrate/reference/",
    r"^fuzz/seeds/",
    r"(^|/)snapshots/",
    r"(^|/)(Cargo|package-lock)\.(lock|json)$",
]

COMMENT = {
    ".rs": "//",
    ".ts": "//",
    ".mjs": "//",
    ".c": "//",
    ".py": "#",
    ".sh": "#",
    ".lua": "--",
}
PROSE = {".md", ".toml"}

REMEDY = {
    "width": "wrap the line at 100 columns",
    "filler": "say the unit, range, source or reason, or delete the comment",
    "pointer": "cite the RFC, paper or page itself",
    "circle": "move what both files need below them, or pass it in",
}

FILLER = re.compile(
    r"^(?!.*[\d`]|.*\bRFC\b|In (?:bits|bytes|segments|packets|rounds|RTTs|ticks|s|ms|us|ns|Hz"
    r"|(?:milli|micro|nano)?seconds)\.)"
    r"(?:(?:Of|What|Who|Whom|Whose|Which|Why|How|It|Its|That|As|From|To|In|By"
    r"|And|Where|When|Whether|At|Those)(?: \S+){1,3}|See (?:above|below|there)|Why|How|Who|What"
    r"|Which|Where|When|Everything"
    r"|(?:Of|What|Who|Whom|Whose|Which|Why|How|Its|That|Where|Those|As)(?: [A-Za-z'-]+){4,5})\.$"
)

POINTER = re.compile(
    r"algorithm reference|\bC-(?:GATE|BASE|UNDO|[A-Z]{4,})\b|\bseeds? 0\d\d\b|\bseeds/0\d\d"
    r"|\bDESIGN\.md\b|\bstyle\.md\b"
)


def tracked():
    out = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout
    names = [n for n in out.split("\0") if n and os.path.isfile(os.path.join(ROOT, n))]
    return [n for n in names if not any(re.search(g, n) for g in GENERATED)]


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


# -- width ---------------------------------------------------------------------------------------


def wide_lines(name, text):
    """Numbers of the lines that are too wide and not exempt."""
    ext = os.path.splitext(name)[1]
    prose = ext in PROSE
    mark = "#" if os.path.basename(name) == "Makefile" else COMMENT.get(ext)
    if not prose and not mark:
        return []
    found, fence = [], False
    for number, line in enumerate(text.split("\n"), 1):
        body = line.strip()
        if mark and body.startswith(mark):
            body = body.lstrip(mark + "!").strip()
        body = re.sub(r"^[#>*-]+ ", "", body)
        if body.startswith("```"):
            fence = not fence
            continue
        fence = fence and (prose or line.strip().startswith(mark))
        if len(line) <= WIDTH or fence or body.startswith("|") or " " not in body:
            continue
        if ext == ".toml" and re.match(r'([\w".-]+ = (?!""")|\{)', line.strip()):
            continue  # a value on one line is no prose
        if prose:
            found.append(number)
        elif line.strip().startswith(mark):
            found.append(number)
        elif re.search(r"\s" + re.escape(mark) + r"\s", line[:WIDTH]) and not in_string(line, mark):
            found.append(number)
    return found


def in_string(line, mark):
    before = line[: re.search(r"\s" + re.escape(mark) + r"\s", line).start()]
    return before.count('"') % 2 == 1


# -- filler --------------------------------------------------------------------------------------


def fillers(text):
    """Numbers of the lines whose whole doc comment is a filler."""
    lines = text.split("\n")
    is_doc = [re.match(r"\s*//[/!](?: |$)", line) is not None for line in lines]
    found = []
    for i, line in enumerate(lines):
        if not is_doc[i]:
            continue
        alone = (i == 0 or not is_doc[i - 1]) and (i + 1 >= len(lines) or not is_doc[i + 1])
        if alone and FILLER.match(re.sub(r"^\s*//[/!] ", "", line).strip()):
            found.append(i + 1)
    return found


# -- circles -------------------------------------------------------------------------------------


def strip(text):
    """Rust without comments, literals and `#[cfg(test)]` items; newlines stay."""
    # In `mod x { ... }` of the same file `super` is the file's own module.
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\'\\])\'',
        re.DOTALL,
    )
    text = token.sub(lambda m: " " + "\n" * m.group(0).count("\n"), text)
    out, at = [], 0
    test = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]")
    for m in iter(lambda: test.search(text, at), None):
        out.append(text[at : m.start()])
        depth, i = 0, m.end()
        while i < len(text):
            c = text[i]
            if c in "{([":
                depth += 1
            elif c in "})]":
                depth -= 1
                if depth == 0 and c == "}":
                    i += 1
                    break
            elif c == ";" and depth == 0:
                i += 1
                break
            i += 1
        # A test module in a file of its own is remembered by a mark.
        declared = re.search(r"\bmod\s+(\w+)\s*;", text[m.end() : i])
        if declared:
            out.append(f" @test {declared.group(1)} ")
        out.append("\n" * text[m.start() : i].count("\n"))
        at = i
    out.append(text[at:])
    return inline_modules("".join(out))


def inline_modules(text):
    """`super::` in modules with a body becomes `self::`, which is the file's module."""
    at = 0
    while m := re.compile(r"\bmod\s+\w+\s*\{").search(text, at):
        depth, i = 1, m.end()
        while i < len(text) and depth:
            depth += (text[i] == "{") - (text[i] == "}")
            i += 1
        body = re.sub(r"\bsuper\s*::", "self::", text[m.end() : i])
        text, at = text[: m.end()] + body + text[i:], m.end()
    return text


def use_tree(text):
    """Paths of a `use`: list of (path, name), name None for `*`."""
    text = text.strip()
    m = re.match(r"^((?:(?:r#)?\w+\s*::\s*)*)\{(.*)\}$", text, re.DOTALL)
    if m:
        prefix = [p for p in re.split(r"\s*::\s*", m.group(1)) if p.strip()]
        parts, depth, start = [], 0, 0
        inner = m.group(2)
        for i, c in enumerate(inner):
            depth += c == "{"
            depth -= c == "}"
            if c == "," and depth == 0:
                parts.append(inner[start:i])
                start = i + 1
        parts.append(inner[start:])
        return [
            (prefix + path, prefix[-1] if name == "self" and prefix else name)
            for part in parts if part.strip()
            for path, name in use_tree(part)
        ]
    m = re.match(r"^(.*?)(?:\s+as\s+(\w+))?$", text, re.DOTALL)
    path = [p.strip() for p in m.group(1).split("::") if p.strip()]
    if not path:
        return []
    if path[-1] == "*":
        return [(path[:-1], None)]
    return [(path, m.group(2) or path[-1])]


class Crate:
    """The modules of one crate and which file uses which."""

    def __init__(self, files):
        """`files`: path below src/ -> text."""
        self.file, self.text = {}, {}
        for name, text in files.items():
            if name.startswith("bin/"):
                continue
            parts = name[:-3].split("/")
            if parts in (["lib"], ["main"]):
                parts = []
            elif parts[-1] == "mod":
                parts = parts[:-1]
            if name == "main.rs" and "lib.rs" in files:
                continue
            self.file[tuple(parts)] = name
            self.text[tuple(parts)] = strip(text)
        tests = {
            m + (t,) for m, text in self.text.items() for t in re.findall(r"@test (\w+)", text)
        }
        for m in list(self.file):
            if any(m[: len(t)] == t for t in tests):
                del self.file[m], self.text[m]
        self.imports, self.globs, self.items = {}, {}, {}
        for m, text in self.text.items():
            self.imports[m], self.globs[m] = {}, []
            for use in re.findall(r"\buse\s+((?:[^;{]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})+);", text):
                for path, name in use_tree(use):
                    if path[-1:] == ["self"]:
                        path = path[:-1]
                    if name is None:
                        self.globs[m].append(path)
                    else:
                        self.imports[m][name] = path
            self.items[m] = set(
                re.findall(
                    r"\b(?:fn|struct|enum|trait|const|static|type|union|macro_rules!)\s+(\w+)", text
                )
            )

    def module(self, here, path):
        """Absolute (module, rest) of a path written in `here`, or None if it leaves the crate."""
        path = list(path)
        if path[0] in ("crate", "$crate"):
            at, path = (), path[1:]
        elif path[0] == "self":
            at, path = here, path[1:]
        elif path[0] == "super":
            at = here
            while path and path[0] == "super":
                at, path = at[:-1], path[1:]
        elif here + (path[0],) in self.file:
            at = here
        elif path[0] in self.imports[here] and self.imports[here][path[0]] != path:
            target = self.imports[here][path[0]]
            if target[:1] == [path[0]]:
                return None
            found = self.module(here, target)
            if found is None:
                return None
            at, path = found[0], found[1] + path[1:]
        else:
            return None
        while path and at + (path[0],) in self.file:
            at, path = at + (path[0],), path[1:]
        return (at, path)

    def home(self, at, rest, seen=frozenset()):
        """The module that defines what `rest[0]` is in `at`: re-exports are followed."""
        if at not in self.file or not rest or (at, rest[0]) in seen:
            return at
        name, seen = rest[0], seen | {(at, rest[0])}
        if name in self.items[at]:
            return at
        if name in self.imports[at]:
            found = self.module(at, self.imports[at][name])
            return at if found is None else self.home(found[0], found[1] + rest[1:], seen)
        for path in self.globs[at]:
            found = self.module(at, path)
            if found and found[0] in self.file and name in self.items[found[0]]:
                return found[0]
        return at

    def edges(self):
        """Module -> modules it uses."""
        edges = defaultdict(set)
        for m, text in self.text.items():
            plain = re.sub(r"\bpub\s*\([^)]*\)", "pub", text)
            paths = [p for n, p in self.imports[m].items()] + self.globs[m]
            body = re.sub(r"\buse\s+[^;]+;", " ", plain)
            paths += [re.split(r"\s*::\s*", p) for p in re.findall(r"(?:\$?\w+\s*::\s*)+\w+", body)]
            used_modules = set()
            for path in paths:
                found = self.module(m, path)
                if found is None:
                    continue
                at, rest = found
                if not rest:
                    continue  # the module itself; what is used of it is a path of its own
                home = self.home(at, rest)
                if home != m and home in self.file:
                    edges[m].add(home)
        return edges

    def folder(self, m):
        """The folder of a module: its own when it has submodules, else its parent's."""
        inner = any(len(o) == len(m) + 1 and o[: len(m)] == m for o in self.file)
        return m if inner or not m else m[:-1]

    def circles(self):
        """Circles over folders: (files concerned, shortest circle as file names)."""
        edges = self.edges()
        concerned, shortest = set(), None
        for component in components(self.file, edges):
            if len({self.folder(m) for m in component}) < 2:
                continue
            concerned |= {self.file[m] for m in component}
            for m in component:
                for n in edges[m]:
                    if n in component and self.folder(n) != self.folder(m):
                        way = path_between(edges, component, n, m)
                        if shortest is None or len(way) + 1 < len(shortest):
                            shortest = [m] + way
        return concerned, [self.file[m] for m in shortest or []]


def components(nodes, edges):
    """Strongly connected components with more than one member (Tarjan, without recursion)."""
    index, low, stack, on, out, count = {}, {}, [], set(), [], 0
    for root in sorted(nodes):
        if root in index:
            continue
        work = [(root, iter(sorted(edges[root])))]
        index[root] = low[root] = count
        count += 1
        stack.append(root)
        on.add(root)
        while work:
            node, rest = work[-1]
            for n in rest:
                if n not in index:
                    index[n] = low[n] = count
                    count += 1
                    stack.append(n)
                    on.add(n)
                    work.append((n, iter(sorted(edges[n]))))
                    break
                if n in on:
                    low[node] = min(low[node], index[n])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = set()
                    while True:
                        n = stack.pop()
                        on.discard(n)
                        component.add(n)
                        if n == node:
                            break
                    if len(component) > 1:
                        out.append(component)
    return out


def path_between(edges, within, start, end):
    """Shortest way from `start` to `end` inside `within`, both included."""
    before, queue = {start: None}, deque([start])
    while queue:
        node = queue.popleft()
        if node == end:
            way = []
            while node is not None:
                way.append(node)
                node = before[node]
            return way[::-1]
        for n in sorted(edges[node]):
            if n in within and n not in before:
                before[n] = node
                queue.append(n)
    raise AssertionError("the component is not strongly connected")


# -- all together --------------------------------------------------------------------------------


def area(name):
    """The folder that a file is accounted to: crates/x, else its first folder, else `.`."""
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] == "crates" else parts[0] if len(parts) > 1 else "."


def find(checks):
    """check -> folder -> messages; a circle counts as many as it has files."""
    found = defaultdict(lambda: defaultdict(list))
    sources = defaultdict(dict)
    for name in tracked():
        if name == "scripts/lint.py":
            continue
        try:
            text = read(name)
        except UnicodeDecodeError:
            continue
        if "width" in checks:
            for line in wide_lines(name, text):
                found["width"][area(name)].append(f"{name}:{line}: wider than {WIDTH} columns")
        if name.endswith(".rs") and "filler" in checks:
            for line in fillers(text):
                words = text.split("\n")[line - 1].strip()
                found["filler"][area(name)].append(f"{name}:{line}: `{words}` says nothing")
        if "pointer" in checks and os.path.splitext(name)[1] in {*COMMENT, *PROSE}:
            for line, words in enumerate(text.split("\n"), 1):
                if m := POINTER.search(words):
                    found["pointer"][area(name)].append(
                        f"{name}:{line}: `{m.group(0)}` is not in this repository"
                    )
        if m := re.match(r"^((?:crates/[^/]+)|calibrate|fuzz)/src/(.*\.rs)$", name):
            sources[m.group(1)][m.group(2)] = text
    if "circle" in checks:
        for crate, files in sorted(sources.items()):
            concerned, shortest = Crate(files).circles()
            if concerned:
                way = " -> ".join(f"{crate}/src/{f}" for f in shortest)
                found["circle"][crate] = [f"{way} (shortest of {len(concerned)} files)"]
                found["circle"][crate] += sorted(
                    f"{crate}/src/{f}: in a circle of files" for f in concerned
                )[1:]
    return found


def allowed():
    table = {}
    try:
        for line in read(ALLOW).split("\n"):
            line = line.split("#")[0].split()
            if line:
                table[(line[0], line[1])] = int(line[2])
    except FileNotFoundError:
        pass
    return table


def self_test():
    """Each check finds what it is for, and passes what is right."""
    wide = "x" * 60 + " " + "y" * 60
    assert wide_lines("a.rs", f"// {wide}") == [1]
    assert wide_lines("a.rs", f'let a = "{wide}"; // b') == []
    assert wide_lines("a.md", f"{wide}\n| {wide} |\n```sh\n{wide}\n```\n{wide}") == [1, 6]
    assert wide_lines("a.rs", f"/// ```\n/// {wide}\n/// ```\n// {wide}") == [4]
    assert wide_lines("a.toml", "# https://" + "x" * 120) == []
    assert fillers("/// Of what.\nx\n/// Goodput, bit/s.\ny\n/// Of what.\n/// And why it is so.") == [1]
    assert fillers("/// What becomes of an arriving packet.\nx\n/// Those of a flow.") == [1, 3]
    assert fillers("/// What a setting holds (`int`).\nx\n/// Its end, if it has one.\n") == []
    assert POINTER.search("see the algorithm reference") and not POINTER.search("seed 7 of 10")
    circle = {
        "lib.rs": "mod a; mod b; pub use a::A;",
        "a/mod.rs": "mod x; pub use x::A;",
        "a/x.rs": "use crate::b::B; pub struct A;",
        "b/mod.rs": "mod y; pub use y::B;",
        "b/y.rs": "// use crate::a::A;\npub struct B; impl B { fn f(_: crate::A) {} }",
    }
    concerned, way = Crate(circle).circles()
    assert concerned == {"a/x.rs", "b/y.rs"} and len(way) == 3, (concerned, way)
    circle["b/y.rs"] = "pub struct B; #[cfg(test)] mod tests { use crate::A; }"
    assert Crate(circle).circles() == (set(), [])
    circle["b/y.rs"] = "mod list { use super::B; } pub struct B;"
    assert Crate(circle).circles() == (set(), [])
    same = {"lib.rs": "mod a; mod b;", "a.rs": "use crate::b::B; pub struct A;"}
    same["b.rs"] = "use crate::a::A; pub struct B;"
    assert Crate(same).circles() == (set(), [])


def main(args):
    self_test()
    lower = "--lower" in args
    checks = [a for a in args if not a.startswith("-")] or list(REMEDY)
    if wrong := [c for c in checks if c not in REMEDY]:
        sys.exit(f"lint: no check `{wrong[0]}`; there are: {' '.join(REMEDY)}")
    found, table, failed = find(checks), allowed(), False
    for check in checks:
        for folder, messages in sorted(found[check].items()):
            limit = table.get((check, folder), 0)
            if len(messages) > limit:
                failed = True
                print("\n".join(messages[:SHOWN]), file=sys.stderr)
                if len(messages) > SHOWN:
                    print(f"... and {len(messages) - SHOWN} more", file=sys.stderr)
                older = f", {limit} allowed in {ALLOW}" if limit else ""
                print(f"{check}: {len(messages)} in {folder}{older}: {REMEDY[check]}", file=sys.stderr)
    for (check, folder), limit in sorted(table.items()):
        now = len(found[check].get(folder, []))
        if check in checks and now < limit and not lower:
            print(f"{check} {folder}: {now} instead of {limit}: write it with {sys.argv[0]} --lower")
    if lower:
        text = [line for line in read(ALLOW).split("\n") if line.startswith("#")]
        for (check, folder), limit in sorted(table.items()):
            now = min(limit, len(found[check].get(folder, []))) if check in checks else limit
            if now:
                text.append(f"{check} {folder} {now}")
        with open(os.path.join(ROOT, ALLOW), "w", encoding="utf-8") as f:
            f.write("\n".join(text) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
