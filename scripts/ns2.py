#!/usr/bin/env python3
"""Random scenarios of preset `2003` in fullpipe and in ns-2 (Debian package `ns2`, version 2.35).

    scripts/ns2.py --fullpipe target/release/fullpipe --seed 1 --count 300
    scripts/ns2.py --only 62        one scenario, with every run

A seed draws bottleneck, law and receiver. Both run it eight times, each with a round trip that is
longer by an eighth of a packet's time: where one flow or two keep a drop-tail queue full it is a
matter of phase which packet is lost, and only means can agree. A scenario agrees if the segments
that each flow delivers in the second half of the run are within 3 % in the mean; *chance* are means
that eight runs do not tell apart, at three standard errors of their difference. Beside them stand
the timeouts of all eight runs, and whether the whole run agrees, start and all.
"""

import argparse
import collections
import concurrent.futures
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PHASES = 8
WITHIN = 0.03
HEADER = 40

# Room of ns-2: `queue-limit` counts the arriving packet in drop-tail queues, so that as many are
# there as with a buffer that has the packet in transmission in it. The SYN is segment 0.
DUMBBELL = """
foreach {k v} $argv { set o($k) $v }
ns-random $o(seed)
set ns [new Simulator]
foreach {k v} [list useHeaders_ true tcpip_base_hdr_size_ 40 packetSize_ $o(mss) \\
    window_ $o(window) syn_ true windowInit_ 2 windowInitOption_ 1 minrto_ 0.2 ecn_ $o(ecn) \\
    max_ssthresh_ $o(limited) increase_num_ $o(increase) decrease_num_ $o(decrease)] {
  Agent/TCP set $k $v
}
if {$o(highspeed)} {
  foreach {k v} {windowOption_ 8 low_window_ 38 high_window_ 83000 high_p_ 1e-7 \\
      high_decrease_ 0.1} { Agent/TCP set $k $v }
}
set left [$ns node]; set right [$ns node]
set delay [expr $o(rtt) / 2.0]
if {$o(red) eq ""} {
  $ns duplex-link $left $right $o(rate) $delay DropTail
} else {
  lassign $o(red) min max max_p weight
  foreach {k v} [list thresh_ $min maxthresh_ $max linterm_ [expr 1.0 / $max_p] \\
      q_weight_ $weight gentle_ true bytes_ false queue_in_bytes_ false adaptive_ 0 \\
      setbit_ $o(ecn) mean_pktsize_ [expr $o(mss) + 40]] { Queue/RED set $k $v }
  $ns simplex-link $left $right $o(rate) $delay RED
  $ns simplex-link $right $left $o(rate) $delay DropTail
}
$ns queue-limit $left $right $o(buffer)
$ns queue-limit $right $left 100000
if {$o(loss) > 0} {
  set losses [new ErrorModel]
  $losses unit pkt
  $losses set rate_ $o(loss)
  $losses ranvar [new RandomVariable/Uniform]
  $losses drop-target [new Agent/Null]
  $ns link-lossmodel $losses $left $right
}
for {set i 0} {$i < $o(flows)} {incr i} {
  set a [$ns node]; set b [$ns node]
  $ns duplex-link $a $left 100Gb [expr $i ? $o(longer) / 2.0 : 0] DropTail
  $ns duplex-link $right $b 100Gb 0ms DropTail
  foreach {x y} [list $a $left $left $a $right $b $b $right] { $ns queue-limit $x $y 1000000 }
  set tcp($i) [new Agent/TCP/$o(agent)]
  set sink [new Agent/$o(sink)]
  $ns attach-agent $a $tcp($i); $ns attach-agent $b $sink; $ns connect $tcp($i) $sink
  set ftp [new Application/FTP]
  $ftp attach-agent $tcp($i)
  $ns at [expr $i ? 2.0 : 0.0] "$ftp start"
}
proc tell {} {
  global tcp o
  for {set i 0} {$i < $o(flows)} {incr i} { puts "[$tcp($i) set ack_] [$tcp($i) set nrexmit_]" }
}
$ns at [expr $o(duration) / 2.0] tell
$ns at $o(duration) { tell; exit 0 }
$ns run
"""


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fullpipe", default=str(ROOT / "target" / "release" / "fullpipe"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only", type=int)
    args = parser.parse_args()
    seeds = [args.only] if args.only else range(args.seed, args.seed + args.count)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        trials = list(pool.map(lambda seed: tried(seed, args.fullpipe), seeds))
    verdicts = collections.defaultdict(collections.Counter)
    whole = collections.Counter(trial["whole"] for trial in trials)
    for trial in trials:
        verdicts[trial["kind"]][trial["verdict"]] += 1
        if trial["verdict"] == "disagrees" or args.only:
            print(describe(trial))
    print("| scenarios | tried | agree | chance | disagree |")
    print("|---|---:|---:|---:|---:|")
    for kind in [*KINDS, "all"]:
        counts = verdicts[kind] if kind != "all" else sum(verdicts.values(), collections.Counter())
        row = [counts[v] for v in ("agrees", "chance", "disagrees")]
        print(f"| {kind} | {sum(row)} | " + " | ".join(map(str, row)) + " |")
    print("whole runs:", ", ".join(f"{whole[v]} {v}" for v in ("agrees", "chance", "disagrees")))
    if args.only:
        print(trials[0]["runs"])
    return 0


KINDS = ["drop-tail", "newreno", "red", "red, marks", "random loss"]
KINDS += ["limited", "aimd", "jumbo", "two"]


def drawn(seed):
    """The settings of a seed, in ns-2's words."""
    draw = random.Random(seed)
    kind = draw.choice(KINDS)
    rate = round(10 ** draw.uniform(6, 8))
    rtt = round(10 ** draw.uniform(-2.2, -0.7), 6)
    mss = 8960 if kind == "jumbo" else 1460
    bdp = rate * rtt / 8 / (mss + HEADER)
    highspeed = kind != "aimd" and draw.random() < 0.4
    o = dict(
        rate=rate,
        rtt=rtt,
        mss=mss,
        buffer=max(6, int(bdp * draw.choice([0.25, 0.5, 1, 1.5]))),
        duration=min(60, max(10, int(300_000 * 12_000 / rate))),
        window=1_000_000,
        highspeed=int(highspeed),
        agent="Newreno" if kind == "newreno" else "Sack1",
        delayed=draw.random() < 0.3,
        flows=2 if kind == "two" else 1,
        limited=0,
        increase=1,
        decrease=0.5,
        ecn=0,
        red="",
        loss=0,
        longer=0,
    )
    if kind == "two":
        o["longer"] = rtt * draw.choice([0, 0.5, 2])
    elif kind.startswith("red"):
        least = int(bdp * draw.choice([0.1, 0.3])) + 6
        o["red"] = f"{least} {3 * least} {draw.choice([0.1, 0.02])} {draw.choice([0.002, 0.01])}"
        o["buffer"] = max(o["buffer"], 12 * least)
        o["ecn"] = int(kind == "red, marks")
    elif kind == "random loss":
        o["loss"] = round(10 ** draw.uniform(-4, -1.7), 6)
    elif kind == "limited":
        o["limited"] = draw.choice([20, 50, 100])
    elif kind == "aimd":
        o["increase"], o["decrease"] = draw.choice([(8, 0.7), (2, 0.5), (15, 0.3)])
    return kind, o


def in_ns2(o, folder):
    sink = "TCPSink" + ("" if o["agent"] == "Newreno" else "/Sack1")
    words = dict(o, sink=sink + ("/DelAck" if o["delayed"] else ""))
    script = Path(folder) / "dumbbell.tcl"
    script.write_text(DUMBBELL)
    flat = [str(x) for pair in words.items() for x in pair]
    ran = subprocess.run(["ns", script, *flat], cwd=folder, capture_output=True, text=True)
    told = [tuple(map(int, line.split())) for line in ran.stdout.splitlines()]
    if ran.returncode or len(told) != 2 * o["flows"]:
        sys.exit(f"ns-2 failed: {ran.stderr[-300:]}")
    halves = zip(told[: o["flows"]], told[o["flows"] :])
    return [(end - middle, end, timeouts) for (middle, _), (end, timeouts) in halves]


def scenario(o):
    stack = "highspeed-ns2" if o["highspeed"] else "reno"
    if (o["increase"], o["decrease"]) != (1, 0.5):
        stack = f"aimd(increase={o['increase']},decrease={1 - o['decrease']:.1f})"
    if o["limited"]:
        stack += f"+limited(max_ssthresh={o['limited']})"
    text = f"""
name = "ns-2"
duration = "{o['duration']}s"

[path]
rate = "{o['rate']}bit/s"
rtt = "{o['rtt'] * 1e9:.0f}ns"
buffer = "{o['buffer']} packets"
mtu = {o['mss'] + HEADER}
"""
    if o["loss"]:
        text += f"loss = {o['loss']}\n"
    if o["red"]:
        least, most, max_p, weight = o["red"].split()
        text += f"""
[path.queue]
kind = "red"
by = "ns-2"
min = "{least} packets"
max = "{most} packets"
max_p = {max_p}
weight = {weight}
ecn = {'true' if o['ecn'] else 'false'}
"""
    text += f'\n[measure]\nwarmup = "{o["duration"] / 2}s"\n'
    for i in range(o["flows"]):
        text += f"""
[[flow]]
name = "flow{i}"
stack = "{stack}"
preset = "2003"
timestamps = false
handshake = true
recovery = "{'newreno' if o['agent'] == 'Newreno' else 'sack'}"
delayed_ack = {'true' if o['delayed'] else 'false'}
"""
        if o["ecn"]:
            text += "ecn = true\n"
        if i:
            text += f"start = \"2s\"\nrtt = \"{(o['rtt'] + o['longer']) * 1e9:.0f}ns\"\n"
    return text


def in_fullpipe(o, folder, fullpipe):
    path = Path(folder) / "ns-2.toml"
    path.write_text(scenario(o))
    command = [fullpipe, "run", path, "--format", "json", "--seed", str(o["seed"])]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(ran.stderr[:600])
    flows = json.loads(ran.stdout)["cases"][0]["flows"]
    segments = o["duration"] / 2 * 1e6 / 8 / o["mss"]
    return [
        (f["goodput_mbps"] * segments, f["delivered_segments"], f["timeouts"]) for f in flows
    ]


def tried(seed, fullpipe):
    kind, o = drawn(seed)
    runs = {"ns-2": [], "fullpipe": []}
    with tempfile.TemporaryDirectory() as folder:
        for phase in range(PHASES):
            packet = (o["mss"] + HEADER) * 8 / o["rate"]
            words = dict(o, seed=phase + 1, rtt=o["rtt"] + phase * packet / PHASES)
            runs["ns-2"].append(in_ns2(words, folder))
            runs["fullpipe"].append(in_fullpipe(words, folder, fullpipe))
    def column(name, flow, which):
        return [run[flow][which] for run in runs[name]]

    flows = range(o["flows"])
    half, whole = (
        max((judged(column("ns-2", i, k), column("fullpipe", i, k)) for i in flows), key=ORDER)
        for k in (0, 1)
    )
    means = [[statistics.mean(column(name, i, 0)) for name in runs] for i in flows]
    timeouts = [sum(sum(column(name, i, 2)) for i in flows) for name in runs]
    found = dict(seed=seed, kind=kind, settings=o, runs=runs, means=means)
    return dict(found, timeouts=timeouts, verdict=half, whole=whole)


ORDER = ["agrees", "chance", "disagrees"].index


def judged(theirs, ours):
    spread = statistics.variance(theirs) + statistics.variance(ours)
    apart = abs(statistics.mean(ours) - statistics.mean(theirs))
    if apart <= WITHIN * statistics.mean(theirs):
        return "agrees"
    return "chance" if apart <= 3 * (spread / PHASES) ** 0.5 else "disagrees"


def describe(trial):
    o = trial["settings"]
    shown = {k: v for k, v in o.items() if v and k not in ("window", "flows", "mss")}
    means = ", ".join(f"{theirs:.0f} and {ours:.0f}" for theirs, ours in trial["means"])
    timeouts = "{} and {} timeouts".format(*trial["timeouts"])
    verdict = f"{trial['verdict']}, the whole {trial['whole']}"
    return f"{trial['seed']} {trial['kind']}: {verdict}: {means} segments, {timeouts}; {shown}"


if __name__ == "__main__":
    sys.exit(main())
