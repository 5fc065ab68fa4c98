#!/usr/bin/env python3
"""Puts a defect into loss recovery, one at a time, and lists what notices.

    scripts/defects.py                     every defect, table on standard output
    scripts/defects.py --only blind        only these; may be repeated
    scripts/defects.py --check             do they apply? builds nothing
    scripts/defects.py --markdown docs/mutants.md
                                           the page's last section, of what was tried
    scripts/defects.py --search fullpipe-out/fuzz
                                           what the scenarios of a search notice, for docs/search.md

Three things are to notice: the literal references of `crates/flow/tests/literal` (histories and
seconds until the first difference, its minimisation included), the properties of
`crates/scenario/tests/it/recovery/properties.rs`, and the tests of single cases beside them.

Works on a copy of the crates; the working tree is not touched. Exit status: 0 if every defect was
noticed by all that it names, within a minute by the references, or with --search if all were tried;
1 if not, or if one does not apply; 2 if the tests fail without any defect.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import mutants

ROOT = mutants.ROOT
CRATES = ["units", "cc", "flow", "host", "run", "metrics", "sim", "scenario"]
# What `fullpipe-calibrate fuzz --again` is made of beside these.
SEARCH = ["crates/fingerprint", "crates/linux", "calibrate"]
RECOVERY = "crates/flow/src/sender/recovery/"
SENDER = "crates/flow/src/sender/"
CLOSE = ("agrees", "chance")  # a panic has no verdict
SECONDS = 60  # within which the references are to find a defect of the sender

# name: (what, literal, properties that have to fail, [(file, text, replacement), ...]). `literal`:
# the references are to find it. As in mutants.py the text occurs once outside the unit tests, and
# white space matches any white space.
DEFECTS = {
    "blind": (
        "an undo mark knows nothing of retransmissions in flight",
        True,
        ["where_nothing_is_reordered_or_late_nothing_is_undone"],
        [
            (
                RECOVERY + "reduction.rs",
                "self.newreno.begin_recovery(); self.forget_old_retransmissions(board);",
                "self.newreno.begin_recovery(); self.first_retransmission = None;",
            ),
            (
                RECOVERY + "reduction.rs",
                "UndoMark::new(board.una(), false, board.retrans_out());"
                " mark.resent(board.get(board.una()))",
                "UndoMark::new(board.una(), false, 0); mark",
            ),
        ],
    ),
    "blind-timeout": (
        "a timeout inside a recovery replaces the recovery's undo mark",
        True,
        [],
        [
            (
                RECOVERY + "timeout.rs",
                "SpuriousRule::Rfc => !matches!(self.phase, Phase::Recovery | Phase::Loss),",
                "SpuriousRule::Rfc => reduces,",
            ),
            (
                RECOVERY + "timeout.rs",
                "self.forget_old_retransmissions(board); let una = board.una();",
                "self.first_retransmission = None; let una = board.una();",
            ),
            (
                RECOVERY + "timeout.rs",
                "UndoMark::new(una, true, retransmissions)",
                "UndoMark::new(una, true, retransmissions * 0)",
            ),
        ],
    ),
    "orphans": (
        "an undo orphans what was resent: no detector looks at it again",
        True,
        [],
        [
            (
                SENDER + "scoreboard/lost.rs",
                "if sent.retransmitted() { again.push((seq, sent.xmit)); }",
                "",
            ),
            (
                RECOVERY + "detect.rs",
                "board.mark_lost_originals(limit, true, &mut lost,",
                "board.mark_lost_originals(limit, false, &mut lost,",
            ),
        ],
    ),
    "frto-early": (
        "F-RTO, in a recovery too, takes a SACK before the retransmission's ACK for the verdict",
        True,
        ["where_nothing_is_reordered_or_late_nothing_is_undone"],
        [
            (
                RECOVERY + "frto.rs",
                "// Duplicates before the ACK of the retransmission only tell the scoreboard.",
                "_ if d.original.is_some_and(|seq| seq < self.point) => (Frto::Off, true),",
            ),
            (
                RECOVERY + "frto.rs",
                "match self.cfg.frto && (!recovering || repeated) {",
                "match self.cfg.frto && (!recovering || repeated || true) {",
            ),
        ],
    ),
    "dsack": (
        "Eifel ignores DSACKs, and what it undoes widens SRTT to the age of the stamp",
        True,
        ["srtt_is_never_above_what_the_path_did"],
        [
            (
                RECOVERY + "undo.rs",
                "let acks_arrived = ir.dsack.is_none() && (sends_dsack || board.flight() > 0);",
                "let acks_arrived = sends_dsack || board.flight() < u64::MAX;",
            ),
            (
                SENDER + "ack.rs",
                "self.undo_reduction(now, unmark, by); undone = true;",
                "self.undo_reduction(now, unmark, by); undone = true;"
                "if let Some(echo) = ir.echo { self.rtt.widen(now.saturating_since(echo)); }",
            ),
            (
                SENDER + "rtt.rs",
                "pub(super) fn remember(&mut self) {",
                "pub(super) fn widen(&mut self, age: Span) { if let Rule::Rfc6298(e) = &mut self.rule {"
                "e.acks.srtt = e.acks.srtt.max(age.as_nanos()); self.estimate.srtt = self.estimate.srtt.max(age); } }"
                "pub(super) fn remember(&mut self) {",
            ),
        ],
    ),
    "no-retransmission-lost": (
        "RACK never looks at retransmissions",
        True,
        [],
        [
            (
                RECOVERY + "detect.rs",
                "let pending_retrans = board.mark_lost_retransmissions(|seq, s| {",
                "let pending_retrans = board.mark_lost_retransmissions(|seq, s| { if seq < u64::MAX { return false; }",
            ),
        ],
    ),
    "deaf": (
        "three hundred segments above a hole, not three, mark it lost",
        True,
        ["a_single_loss_needs_no_timeout"],
        [
            (RECOVERY + "detect.rs", "const DUP_THRESH: u64 = 3;", "const DUP_THRESH: u64 = 300;"),
        ],
    ),
    "hasty": (
        "RACK waits for half of its time",
        True,
        ["slight_reordering_is_learnt"],
        [
            (
                RECOVERY + "rack.rs",
                "xmit + self.rtt + window",
                "xmit + (self.rtt + window) / 2",
            ),
        ],
    ),
    "never-learns": (
        "reordering is never learnt",
        True,
        ["slight_reordering_is_learnt"],
        [
            (
                RECOVERY + "rack.rs",
                "self.reordering_seen = true;",
                "self.reordering_seen = false;",
            ),
        ],
    ),
    "stamps": (
        "stamps are read on a connection that has none",
        False,
        ["undo::without_time_stamps_nothing_is_told_by_them"],
        [
            (
                SENDER + "ack.rs",
                "(advanced && self.cfg.timestamps).then_some(ack.echo)",
                "advanced.then_some(ack.echo)",
            ),
        ],
    ),
    "backoff": (
        "the backoff of the timer outlives a sample",
        True,
        [],
        [
            (SENDER + "rtt.rs", "self.samples += 1; self.backoff = 0;", "self.samples += 1;"),
        ],
    ),
    "stuck": (
        "the window stays where a timeout left it",
        False,
        ["a_flow_alone_uses_a_path_that_is_clean_again"],
        [
            (
                SENDER + "ack.rs",
                "self.cc.on_ack(event); self.note_exit(now, starting);",
                "if self.record.counts().timeouts == 0 { self.cc.on_ack(event); } self.note_exit(now, starting);",
            ),
        ],
    ),
    "uncounted": (
        "retransmissions are not counted as sent",
        False,
        ["nothing_is_created"],
        [
            (
                SENDER + "counts.rs",
                "self.counts.retransmits += 1;",
                "self.counts.retransmits += 1; self.counts.sent -= 1;",
            ),
        ],
    ),
}

MARK = "## Defects of loss recovery"
HEADER = f"""{MARK}

Each row puts a defect into the sender and names what notices: the literal references
(`crates/flow/tests/literal`; histories and seconds until the first difference, its minimisation
included, one core) and the tests of `crates/scenario/tests/it/recovery`, of which those in bold are
properties over random scenarios. Made by `scripts/defects.py --markdown docs/mutants.md`; the
script fails if a property that is to notice does not, or the references take more than a minute.

| defect | literal references | tests of whole simulations |
|---|---|---|
"""


def main():
    args = parse_arguments()
    work = pathlib.Path(args.scratch)
    chosen = {n: d for n, d in DEFECTS.items() if not args.only or n in args.only}
    copy_workspace(work, SEARCH if args.search else [])
    stale = [(n, e) for n, d in chosen.items() for e in d[3] if mutants.locate(work, e[0], e[1], "") is None]
    for name, (file, text, _) in stale:
        print(f"{name} does not apply: {file}: {text}")
    if args.check or stale:
        return 1 if stale else 0
    if args.search:
        return search(work, pathlib.Path(args.search), chosen)
    found = notice(work, args, "100000")
    if found != (None, []):
        print("the tests fail without a defect:", found, file=sys.stderr)
        return 2
    rows, bad = [], []
    for name, (what, literal, wanted, edits) in chosen.items():
        difference, failed = with_defect(work, args, edits)
        missed = [p for p in wanted if p not in failed and f"properties::{p}" not in failed]
        if literal and (difference is None or difference[1] > SECONDS):
            missed.insert(0, "literal references")
        words = "none" if difference is None else f"history {difference[0]:,}, {difference[1]:.1f} s"
        print(f"{name}: {words}; {', '.join(failed) or 'no test'}", flush=True)
        if missed:
            print(f"    NOT NOTICED by {', '.join(missed)}", flush=True)
            bad.append(name)
        rows.append((what, words if literal else "not compared", failed))
    print(f"{len(rows)} defects, {len(bad)} not noticed")
    if args.markdown:
        write_markdown(pathlib.Path(args.markdown), rows)
    return 1 if bad else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", action="append", help="only this defect; may be repeated")
    parser.add_argument("--scratch", default=str(ROOT / "target" / "defects"), help="where the copy is built")
    parser.add_argument("--cases", default="5", help="PROPERTY_CASES")
    parser.add_argument("--histories", default="1000000", help="most histories for the references")
    parser.add_argument("--markdown", help="write the page's section to this file")
    parser.add_argument("--search", metavar="DIR", help="`--out` of a search: what its scenarios notice")
    parser.add_argument("--check", action="store_true", help="only check that every defect applies; builds nothing")
    return parser.parse_args()


def copy_workspace(work, more=()):
    mutants.copy_workspace(work, [f"crates/{c}" for c in CRATES] + list(more))
    # Built into the crate `scenario`.
    shutil.copytree(ROOT / "scenarios", work / "scenarios", dirs_exist_ok=True)


def search(work, log, chosen):
    """Prints what the scenarios of a search's log notice of each defect."""
    sound = verdicts(work, log)
    close = {seed for seed, verdict in sound.items() if verdict in CLOSE}
    print(f"{len(close)} of {len(sound)} scenarios agree or are within chance")
    print("\n| defect | found first | found by |\n|---|---|---:|")
    for what, _, _, edits in chosen.values():
        now = edited(work, edits, lambda: verdicts(work, log))
        found = [i for i, seed in enumerate(sound, 1) if seed in close and now.get(seed) not in CLOSE]
        first = f"by scenario {found[0]:,}" if found else "not"
        print(f"| {what} | {first} | {len(found):,} |", flush=True)
    return 0


def verdicts(work, log):
    """Verdict of today's simulator by seed, in the order of the seeds."""
    env = {**os.environ, "CARGO_TARGET_DIR": str(work / "target")}
    judged = work / "target" / "search"
    judged.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(log / "fuzz.jsonl", judged / "fuzz.jsonl")
    cargo = ["cargo", "run", "-q", "--profile", "quick", "-p", "fullpipe-calibrate", "--"]
    run(work, env, [*cargo, "fuzz", "--again", "--out", str(judged)], True)
    lines = [json.loads(line) for line in (judged / "fuzz.jsonl").read_text().splitlines()]
    last = {line["seed"]: line["verdict"] for line in lines if "verdict" in line}
    return dict(sorted(last.items()))


def with_defect(work, args, edits):
    """What notices the edits."""
    return edited(work, edits, lambda: notice(work, args))


def edited(work, edits, action):
    """What `action` returns with the edits in the files, which are put back."""
    kept = {}
    try:
        for file, text, replacement in edits:
            path, source, match = mutants.locate(work, file, text, "")
            kept.setdefault(path, source)
            path.write_text(source[: match.start()] + replacement + source[match.end() :])
        return action()
    finally:
        for path, source in kept.items():
            path.write_text(source)


def notice(work, args, histories=None):
    """((history, seconds) or None of the references, names of the failed tests)."""
    env = {
        "CARGO_TARGET_DIR": str(work / "target"),
        "RUST_BACKTRACE": "0",
        "LITERAL_SEED": "1",
        "LITERAL_HISTORIES": histories or args.histories,
        "PROPERTY_CASES": args.cases,
        "PROPERTY_SEED": "1",
        "INSTA_UPDATE": "no",
    }
    env = {**os.environ, **env}
    cargo = ["cargo", "test", "-q"]
    literal = [*cargo, "-p", "fullpipe-flow", "--test", "literal"]
    whole = [*cargo, "-p", "fullpipe-scenario", "--test", "it"]
    for command in (literal, whole):
        run(work, env, [*command, "--no-run"], True)
    began = time.monotonic()
    said = run(work, env, [*literal, "--", "--ignored", "a_million_histories"], False)
    seconds = time.monotonic() - began
    seed = re.search(r"^seed (\d+):$", said, re.MULTILINE)
    difference = (int(seed[1]), seconds) if seed else None
    if "panicked" in said and not seed:
        difference = (0, seconds)
    said = run(work, env, [*whole, "recovery::"], False)
    failed = re.findall(r"^    recovery::(\S+)$", said, re.MULTILINE)
    return difference, sorted(set(failed), key=lambda n: (not n.startswith("properties"), n))


def run(work, env, command, must):
    done = subprocess.run(command, cwd=work, env=env, capture_output=True, text=True)
    if must and done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr[-3000:]}")
    return done.stdout + done.stderr


def write_markdown(path, rows):
    page = path.read_text().split(MARK)[0].rstrip()
    text = HEADER
    for what, words, failed in rows:
        names = [f"**`{n.split('::')[-1]}`**" if n.startswith("properties") else f"`{n}`" for n in failed]
        text += f"| {what} | {words} | {', '.join(names) or 'none'} |\n"
    path.write_text(f"{page}\n\n{text}")


if __name__ == "__main__":
    sys.exit(main())
