import assert from "node:assert/strict";
import { test } from "node:test";

import { cdf, fraction, rows as cdfRows } from "../../src/charts/cdf.ts";
import { lines, positions } from "../../src/charts/lines.ts";
import { losses } from "../../src/charts/losses.ts";
import { cellText, colour, coloursOf, drawing, rows, type Matrix } from "../../src/charts/matrix.ts";
import { range, rangeDomain } from "../../src/charts/range.ts";
import { commonTop, highest, saw } from "../../src/charts/sawtooth.ts";
import { drawing as panels, rows as seriesRows } from "../../src/charts/series.ts";
import { luminance, seriesColour } from "../../src/colour.ts";
import { curvesOf, laidOver, overlay } from "../../src/curves.ts";
import { float32s, float64s } from "../../src/decode.ts";
import type { Scenario } from "../../src/generated/data.ts";
import { combinations, half, Model } from "../../src/model.ts";
import { panels as completionPanels } from "../../src/sections/completion.ts";
import { answer, drawing as limits, limitedFlows } from "../../src/sections/limits.ts";
import { linesOf } from "../../src/sections/metrics.ts";
import { boundText, notes, outcome, ranking, sorted, words } from "../../src/sections/overview.ts";
import { allCases, layoutOf, matrix, pings } from "../../src/sections/tables.ts";
import { toFile, toText, type Mark } from "../../src/svg.ts";
import { f32, f64, packed, page } from "./example.ts";

const model = (): Model => {
  const p = page();
  return new Model(p, p.scenarios[0]!, "example");
};

/** One flow or several beside two classes of short flows, in one case. */
function beside(flows: readonly string[]): Model {
  const p = page();
  const s = p.scenarios[0]!;
  const table = (scope: "flow" | "traffic", name: readonly string[], metric: string, first: number) => ({ scope, case: name.map(() => 0), name: [...name], kind: name.map(() => ""), columns: [{ metric, mean: f64(name.map((_, i) => first + i)) }] });
  s.axes = [];
  s.cases = [{ ...s.cases[0]!, at: [] }];
  s.tables = [table("flow", flows, "goodput_mbps", 1), table("traffic", ["web", "video"], "completion_time_s.mean", 7)];
  s.side_by_side = ["goodput_mbps", "completion_time_s.mean"];
  p.metrics.push({ ...p.metrics[0]!, name: "completion_time_s.mean", title: "Completion time", heading: "Completion time, s", scope: "traffic", unit: "s", better: "lower" });
  return new Model(p, s, "beside");
}

/** Titles of the tables, and of every column its head and what is in it. */
function shownOf(model: Model): string[][] {
  const column = (made: Matrix, i: number): string => made.cells.map((row) => row[i]?.estimate.mean ?? "-").join(" ");
  return allCases(model, undefined).map(({ title, made }) => [title, ...made.columnHeads[0]!.heads.map((h, i) => `${h.label}: ${column(made, i)}`)]);
}

test("several flows of one case have a row each, of several cases a table each", () => {
  const flows = Array.from({ length: 60 }, (_, i) => `flow-${i}`);
  const [only, ...more] = allCases(over(flows, ["bottleneck"]), undefined);
  assert.deepEqual([only!.title, only!.made.rowHead, only!.made.rows, more.length], ["All flows", "flow", flows, 1]);
  const p = page();
  const s = p.scenarios[0]!;
  const flow = s.tables[0]!;
  flow.name = flow.name.map((_, i) => (i % 2 === 0 ? "a" : "b"));
  const of = allCases(new Model(p, s, "cases"), undefined);
  assert.deepEqual(of.map(({ title, made }) => [title, made.rows.length]), [["All cases, flow a", s.cases.length], ["All cases, flow b", s.cases.length]]);
});

test("every class of short flows has its own column, and none in the table of a flow", () => {
  const shown = (flows: readonly string[]) => shownOf(beside(flows));
  const classes = ["web: Completion time, s: 7", "video: Completion time, s: 8"];
  assert.deepEqual(shown(["a"]), [["All cases", "Goodput, Mbit/s: 1", ...classes]]);
  assert.deepEqual(shown(["a", "b"]), [
    ["All flows", "Goodput, Mbit/s: 1 2"],
    ["All cases, short flows", ...classes],
  ]);
});

/** As `beside`, with links in the place of the short flows. */
function over(flows: readonly string[], links: readonly string[]): Model {
  const p = page();
  const s = p.scenarios[0]!;
  const table = (scope: "flow" | "link", name: readonly string[], metric: string, first: number) => ({ scope, case: name.map(() => 0), name: [...name], kind: name.map(() => ""), columns: [{ metric, mean: f64(name.map((_, i) => first + i)) }] });
  s.axes = [];
  s.cases = [{ ...s.cases[0]!, at: [] }];
  s.tables = [table("flow", flows, "goodput_mbps", 1), table("link", links, "utilization", 7)];
  s.side_by_side = ["goodput_mbps", "utilization"];
  p.metrics.push({ ...p.metrics[0]!, name: "utilization", title: "Utilization", heading: "Utilization", scope: "link", unit: "1", better: "higher" });
  return new Model(p, s, "over");
}

test("every one of several links has its own column, and none in the table of a flow", () => {
  const shown = (flows: readonly string[], links: readonly string[]) => shownOf(over(flows, links));
  const of = ["access: Utilization: 7", "core: Utilization: 8"];
  assert.deepEqual(shown(["a"], ["access", "core"]), [["All cases", "Goodput, Mbit/s: 1", ...of]]);
  assert.deepEqual(shown(["a", "b"], ["access", "core"]), [
    ["All flows", "Goodput, Mbit/s: 1 2"],
    ["All cases, links", ...of],
  ]);
  // The only one needs no name, and is what every flow crosses.
  assert.deepEqual(shown(["a", "b"], ["bottleneck"]), [
    ["All flows", "Goodput, Mbit/s: 1 2"],
    ["All flows together", "Utilization: 7"],
  ]);
});

test("pings have a table, with a row for every case", () => {
  const p = page();
  const s = p.scenarios[0]!;
  const names = s.cases.map(() => "ping");
  const columns = ["rtt_ms.mean", "loss_rate"].map((metric, i) => ({ metric, mean: f64(s.cases.map((_, c) => 10 * i + c)) }));
  assert.deepEqual(pings(model(), undefined), []);
  s.tables.push({ scope: "traffic", case: s.cases.map((_, i) => i), name: names, kind: names, columns });
  p.metrics.push({ ...p.metrics[0]!, name: "rtt_ms.mean", heading: "RTT, mean, ms", scope: "traffic" }, { ...p.metrics[0]!, name: "loss_rate", heading: "Loss rate", scope: "traffic" });
  const m = new Model(p, s, "pings");
  const [only] = pings(m, undefined);
  assert.deepEqual(only!.made.columnHeads[0]!.heads.map((h) => h.label), ["ping: RTT, mean, ms", "ping: Loss rate"]);
  assert.deepEqual(only!.made.rows, s.cases.map((_, c) => m.caseLabel(c)));
  assert.deepEqual(only!.made.cells.map((row) => row.map((cell) => cell!.estimate.mean)), s.cases.map((_, c) => [c, 10 + c]));
});

test("columns come back to the bit", () => {
  const values = [1 / 3, -0, 1e300, NaN];
  assert.deepEqual([...float64s(f64(values))], values);
  assert.deepEqual([...float32s(f32([0.5, -2]))], [0.5, -2]);
});

test("estimates by case and name", () => {
  const m = model();
  assert.equal(m.estimate(0, "goodput_mbps")!.mean, 1);
  assert.equal(half(m.estimate(0, "goodput_mbps")!), 0.5);
  assert.equal(m.estimate(0, "nope"), undefined);
  assert.equal(m.caseLabel(6), "cubic, window 800 segments, RTT 10 ms");
  assert.equal(m.competitors()!.key, "flow.main.stack");
  assert.equal(m.pair(), undefined);
});

test("what competes is said by the program", () => {
  const p = page();
  const s = p.scenarios[0]!;
  const { flow: _, ...axis } = s.axes[0]!;
  s.axes[0] = { ...axis, key: "sending", label: "sending", of_stacks: false, traffic: "web" };
  s.axes[1] = { ...s.axes[1]!, key: "load", label: "load", flow: "long" };
  s.axes.reverse();
  for (const c of s.cases) c.at.reverse();
  const m = new Model(p, s, "example");
  assert.equal(m.competitors()!.key, "sending");
  assert.equal(m.flowOf(m.competitors()!), undefined);
});

test("a matrix has every value in its place, and a gap where there is no case", () => {
  const m = model();
  const layout = layoutOf(m, m.competitors()!);
  const t = matrix(m, "goodput_mbps", "main", layout, new Map(), "t");
  assert.deepEqual(t.rows, ["reno", "cubic"]);
  assert.deepEqual(t.columnHeads.map((l) => l.heads.map((h) => [h.label, h.span])), [
    [["64 segments", 2], ["800 segments", 2]],
    [["10 ms", 1], ["70 ms", 1], ["10 ms", 1], ["70 ms", 1]],
  ]);
  assert.deepEqual(t.cells.map((r) => r.map((c) => c?.estimate.mean)), [[1, 1.1, 2, 2.1], [11, 11.1, 12, undefined]]);
  const style = Array.isArray(t.style) ? t.style[0]! : t.style;
  assert.deepEqual(cellText(t.cells[1]![0]!, style), { value: "11.00", half: "± 0.50" });
  // One line per cell, in the order of the table, at full precision.
  const out = rows(t);
  assert.deepEqual(out[0], ["stack", "window", "RTT", "mean", "ci95_low", "ci95_high"]);
  assert.deepEqual(out[2], ["reno", "64 segments", "70 ms", 1.1, 0.6000000000000001, 1.6]);
  assert.equal(out.length, 8);
});

test("a cell's colour grows with its value", () => {
  const colours = coloursOf([3, 1, 2], false);
  const l = [1, 1.5, 2, 2.9, 3].map((v) => luminance(colour(v, colours, "light")!));
  for (let i = 1; i < l.length; i++) assert.ok(l[i]! < l[i - 1]!);
  const signed = coloursOf([-0.2, 0.8], true);
  assert.equal(colour(0, signed, "light"), "#f7f7f5");
  assert.deepEqual(signed, { kind: "signed", most: 0.8 });
  assert.equal(colour(1, coloursOf([], false), "light"), undefined);
  assert.ok(colour(5, coloursOf([5, 5], false), "light"));
});

test("the ranking says what its means are over and who has no rank", () => {
  const r = ranking(model())!;
  assert.deepEqual(r.names, ["cubic", "reno"]);
  assert.equal(r.head, "Goodput, Mbit/s");
  assert.equal(notes(r, false)[1], "Means over 3 of 4 cases, where every ranked one has a value; the thin line spans them.");
  assert.equal(notes({ ...r, cases: 4 }, false)[1], "Means over 4 cases each; the thin line spans them.");
  assert.equal(notes({ ...r, of_cases: 1, cases: 1 }, false).length, 2);
  const rows = [r.rows[0]!, { ...r.rows[1]!, mean: null, half: null, least: null, most: null, cases: 1 }];
  assert.equal(notes({ ...r, rows }, false)[2], "Without a rank: too few cases with a value, or none in common with the others.");
  assert.deepEqual(words(rows[1]!, r), ["–", "a value in 1 of 4"]);
  assert.deepEqual(words(rows[0]!, r), ["11.50", "± 0.10"]);
});

test("of several flows the heading names the one that a metric is of", () => {
  const p = page();
  const s = p.scenarios[0]!;
  const flow = s.tables[0]!;
  flow.columns.push({ ...flow.columns[0]!, metric: "stability" });
  p.metrics.push({ ...p.metrics[0]!, name: "stability", unit: "1" });
  const heads = (): string[] => {
    const ranked = ranking(new Model(p, s, "example"))!;
    return [ranked.head, ...ranked.others.map((o) => o.head)];
  };
  assert.equal(heads().some((head) => head.includes(":")), false, "one flow");
  flow.case.push(...flow.case);
  flow.name.push(...flow.name.map(() => "other"));
  flow.kind.push(...flow.kind);
  for (const c of flow.columns) {
    const twice = (text = ""): string => f64([...float64s(text), ...float64s(text)]);
    Object.assign(c, { mean: twice(c.mean), low: twice(c.low), high: twice(c.high) });
  }
  assert.deepEqual(heads().map((head) => head.slice(0, 6)), ["main: ", "main: "]);
});

test("what fails is first", () => {
  const e = { name: "", case: 0, metric: "", of: null, observed: 1, ci95: null, bound: [0, 2] as [number, number], unclear: false, source: "" };
  assert.deepEqual(sorted([{ ...e, pass: true, name: "a" }, { ...e, pass: false, name: "b" }]).map((x) => x.name), ["b", "a"]);
  const three = [{ ...e, pass: true }, { ...e, pass: true, unclear: true, name: "u" }, { ...e, pass: false }];
  assert.deepEqual(sorted(three).map((x) => [x.pass, x.unclear]), [[false, false], [true, true], [true, false]]);
  assert.equal(outcome(three), "1 of 3 fail, 1 unclear");
  assert.equal(outcome(three.slice(0, 2)), "1 of 2 hold, 1 unclear");
  const words = (n: number): string => (n === 1 ? "1 expectation" : `${n} expectations`);
  assert.equal(outcome(three.slice(0, 1), words), "1 expectation holds");
  assert.equal(outcome(three.slice(2), words), "1 expectation fails");
  assert.equal(boundText([null, 3]), "at most 3.000");
  assert.equal(boundText([0.329877, 0.329879]), "0.3298770 to 0.3298790");
  const [low, high] = rangeDomain({ ...e, observed: 9, pass: false });
  assert.ok(low < 0 && high > 9);
  assert.equal(find(range({ ...e, pass: true }, ""), "circle").length, 1);
  assert.equal(find(range({ ...e, pass: false }, ""), "circle").length, 0);
});

test("curves of a case", () => {
  const m = model();
  const c = curvesOf(m, 0)!;
  assert.deepEqual(c.panels.map((p) => p.key), ["cwnd", "queue"]);
  assert.deepEqual([...c.time], [1.25, 3.75, 6.25, 8.75]);
  const [window, threshold] = c.panels[0]!.traces;
  assert.deepEqual([[...window!.low], [...window!.high]], [[1, 2, 3, 4], [1, 5, 3, 6]]);
  assert.equal(window!.label, "main: reno");
  assert.deepEqual([...threshold!.low], [NaN, NaN, 8, 8]);
  assert.equal(highest(c), 6);
  assert.equal(curvesOf(m, 1), undefined);
  const csv = seriesRows(c);
  assert.deepEqual(csv[0], ["time_s", "cwnd_segments main low", "cwnd_segments main high", "ssthresh_segments main", "queue_packets bottleneck low", "queue_packets bottleneck high"]);
  assert.deepEqual(csv[2], [3.75, 2, 5, NaN, 0, 1]);
});

test("a panel has the heading and the flow that the file asks for", () => {
  const p = page();
  const s = p.scenarios[0]!;
  const layout = s.layouts[0]!;
  layout.push({ what: "cwnd", of: "other", stat: "low", streams: 1 }, { what: "queue", of: "far", stat: "low", streams: 1 });
  s.cases[0]!.curves = { step: 2.5, rows: 1, layout: 0, data: packed(layout.map((_, i) => [i])) };
  const shown = (figures: Scenario["figures"]) => {
    const m = new Model(p, { ...s, figures, cases: s.cases.map((c) => ({ ...c, ...(c.curves ? { curves: { ...c.curves } } : {}) })) }, "asked");
    return [curvesOf(m, 0)!, laidOver(m, [0], () => "reno")!].map((c) => c.panels.map((x) => [x.id, x.title, ...x.traces.map((t) => t.label)]));
  };
  const [own, laid] = shown([]);
  assert.deepEqual(own![1], ["queue", "Queue", "bottleneck", "far"]);
  assert.equal(laid![0]![1], "Congestion window");
  const asks = [{ figure: "cwnd", flow: "other", title: "Only other" }, { figure: "cwnd" }, { figure: "queue", flow: "far", title: "My queue" }];
  const [asked, over] = shown(asks);
  assert.deepEqual(asked, [
    ["cwnd", "Only other", "other"],
    ["cwnd-2", own![0]![1], "main: reno", "ssthresh, main", "other"],
    ["queue", "My queue", "far"],
  ]);
  assert.deepEqual(over!.map((x) => x.slice(0, 3)), [["cwnd", "Only other", "reno"], ["cwnd-2", "Congestion window", "reno, main"], ["queue", "My queue", "reno"]]);
  assert.equal(highest(curvesOf(new Model(p, { ...s, figures: asks }, "asked"), 0)!), 5, "a sawtooth is of the same flow");
});

test("completion times have the heading and the class that the file asks for", () => {
  const p = page();
  const s = p.scenarios[0]!;
  s.axes = [];
  s.cases = [{ ...s.cases[0]!, at: [], completions: ["web", "video"].map((name) => ({ name, quantiles: f32([1]), finished: 1, unfinished: 0 })) }];
  const shown = (figures: Scenario["figures"]) => completionPanels(new Model(p, { ...s, figures }, "asked")).map((x) => [x.title, x.label]);
  assert.deepEqual(shown([]), [["Completion times", "web"], ["Completion times", "video"]]);
  assert.deepEqual(shown([{ figure: "completion", flow: "video", title: "Films" }]), [["Films", "video"]]);
});

test("scales of small multiples", () => {
  assert.equal(commonTop([100, 950]), 1000);
  assert.equal(commonTop([10, 950]), undefined);
});

test("every drawing is a file that stands alone", () => {
  const m = model();
  const c = curvesOf(m, 0)!;
  const drawn = [
    drawing(matrix(m, "goodput_mbps", "main", layoutOf(m, m.competitors()!), new Map(), 'a < b & "c"')),
    saw(c, "reno", 10),
    panels(c, "title", [0, 10]),
    ...linesOf(m, m.scenario.figures[0]!).map((l) => lines(l)),
    cdf({ title: "t", xTitle: "s", curves: [{ name: "a", colour: 0, quantiles: Float32Array.from([1, 2, 30]), finished: 0.5 }] }),
    losses({ title: "t", variants: [{ name: "a", colour: 0, losses: { each: [0.1, null], next: [0.5], transfers: [10, 0] } }] }),
  ];
  for (const d of drawn) {
    const file = toFile(d, "light");
    assert.ok(!file.includes("var(") && !file.includes("NaN") && !file.includes("undefined"), file.slice(0, 400));
    assert.ok(!/<text[^>]*><\/text>/.test(file));
    assert.ok(Number(d.attrs["width"]) > 0 && Number(d.attrs["height"]) > 0);
  }
  assert.ok(toText(drawn[0]!).includes("a &lt; b &amp; "));
});

test("a metric over a quantity is drawn to scale, over words side by side", () => {
  const x = (labels: string[], values: (number | undefined)[]) => labels.map((label, i) => ({ label, value: values[i] }));
  assert.deepEqual(positions(x(["0ms", "50ms", "100ms"], [0, 0.05, 0.1]), [0, 100]).scaled, false, "zero has no place on a scale that may be logarithmic");
  assert.deepEqual(positions(x(["10ms", "50ms", "90ms"], [0.01, 0.05, 0.09]), [0, 100]).at, [0, 50, 100]);
  assert.deepEqual(positions(x(["reno", "cubic"], []), [0, 100]).at, [25, 75]);
  assert.equal(positions(x(["1 segment", "1000 segments", "1000000 segments"], [1, 1e3, 1e6]), [0, 100]).at[1]!.toFixed(6), "50.000000");
  const [drawn] = linesOf(model(), { figure: "metric", x: "flow.main.window", y: "goodput_mbps" });
  assert.deepEqual(drawn!.series.map((s) => s.name), ["reno, RTT 10 ms", "reno, RTT 70 ms", "cubic, RTT 10 ms", "cubic, RTT 70 ms"]);
  assert.equal(drawn!.series[3]!.points[1], undefined);
});

test("the fraction that was complete", () => {
  const c = { name: "", colour: 0, quantiles: Float32Array.from([1, 2, 4]), finished: 0.5 };
  assert.equal(fraction(c, 0.9), 0);
  assert.equal(fraction(c, 2), 0.25);
  assert.equal(fraction(c, 3), 0.375);
  assert.equal(fraction(c, 9), 0.5);
  assert.deepEqual(cdfRows({ title: "", xTitle: "s", curves: [c] }).slice(1), [["", 0, 1], ["", 0.25, 2], ["", 0.5, 4]]);
});

test("combinations are in the order of the axes", () => {
  const m = model();
  assert.deepEqual(combinations(m, m.axes.slice(1)).map((c) => c.label), ["window 64 segments, RTT 10 ms", "window 64 segments, RTT 70 ms", "window 800 segments, RTT 10 ms", "window 800 segments, RTT 70 ms"]);
});

function find(node: Mark, tag: string): Mark[] {
  const inside = node.children.flatMap((c) => (typeof c === "string" ? [] : find(c, tag)));
  return node.tag === tag ? [node, ...inside] : inside;
}

test("what limited each flow, whose matter it was, and the same in the file", () => {
  const p = page();
  const s = p.scenarios[0]!;
  const of = (name: string, unit: string) => ({ name, title: name, heading: name, scope: "flow" as const, unit, count: false, signed: false, better: "neither" as const, about: "", formula: "", source: "" });
  const n = s.cases.length;
  const share = s.cases.map((_, i) => (i < 2 ? 0.25 : 1));
  p.metrics.push(of("limited.network", "1"), of("limited.local_queue", "1"), of("local_stalls", "segments"));
  s.tables[0]!.columns.push(
    { metric: "limited.network", mean: f64(share) },
    { metric: "limited.local_queue", mean: f64(share.map((v) => 1 - v)) },
    { metric: "local_stalls", mean: f64(s.cases.map((_, i) => (i === 1 ? 3 : 0))) },
  );
  const m = new Model(p, s, "example");
  const flows = limitedFlows(m);
  assert.equal(flows.length, n);
  assert.deepEqual([flows[0]!.longest, flows[2]!.longest, flows[1]!.stalls], [1, 0, 3]);
  assert.equal(answer(flows), `The network held back ${n - 2} of ${n} flows for most of the time, the sender's host 2.`);
  assert.equal(answer(flows.slice(0, 1)), "The sender's host held back the flow for most of the time.");
  assert.equal(answer(flows.slice(0, 2)), "The sender's host held back both flows for most of the time.");
  const bars = toText(limits(flows, "t", [0, 1], false));
  assert.match(bars, /local queue/);
  assert.ok(bars.includes('width="195"'), "three quarters of the bar");
  assert.deepEqual(limitedFlows(model()), []);
});

test("curves of several cases lie over one another, on the coarsest grid", () => {
  const p = page();
  // CUBIC's run was kept twice as fine and ended earlier.
  const fine = [[1, 9, 2, 4, 5, 5], [1, 9, 3, 4, 5, 7], [NaN, NaN, NaN, NaN, NaN, NaN], [0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]];
  p.scenarios[0]!.cases[4]!.curves = { step: 1.25, rows: 6, layout: 0, data: packed(fine) };
  const m = new Model(p, p.scenarios[0]!, "example");
  const curves = laidOver(m, [0, 1, 4], (i) => m.value(i, m.axes[0]!))!;
  assert.deepEqual([curves.step, curves.rows, [...curves.time]], [2.5, 4, [1.25, 3.75, 6.25, 8.75]]);
  const [windows, queue] = curves.panels;
  assert.deepEqual(windows!.traces.map((t) => [t.label, t.colour]), [["reno", 0], ["cubic", 1]], "no thresholds, nothing of a case without curves");
  assert.deepEqual([[...windows!.traces[0]!.low], [...windows!.traces[0]!.high]], [[1, 2, 3, 4], [1, 5, 3, 6]]);
  assert.deepEqual([[...windows!.traces[1]!.low], [...windows!.traces[1]!.high]], [[1, 2, 5, NaN], [9, 4, 7, NaN]]);
  assert.deepEqual(queue!.traces.map((t) => [t.label, t.colour]), [["reno", 0], ["cubic", 1]], "the queue has the colour of its case");
  const head = seriesRows(curves)[0]!;
  assert.deepEqual(head.slice(0, 3), ["time_s", "cwnd_segments reno low", "cwnd_segments reno high"]);
});

/** The example with `n` stacks, a case each, and with a second link. */
function stacks(n: number): Model {
  const p = page();
  const s = p.scenarios[0]!;
  s.axes = [{ ...s.axes[0]!, values: Array.from({ length: n }, (_, i) => `stack-${i}`) }];
  s.layouts[0]!.push({ what: "queue", of: "reverse", stat: "low", streams: 1 });
  const curves = { step: 2.5, rows: 1, layout: 0, data: packed([[1], [2], [3], [4], [5], [6]]) };
  s.cases = s.axes[0]!.values.map((_, i) => ({ ...s.cases[0]!, at: [i], curves }));
  return new Model(p, s, "example");
}

test("a stack has one colour in every panel, and where colours end dashes tell curves apart", () => {
  const m = stacks(10);
  const curves = laidOver(m, m.cases.map((_, i) => i), (i) => `stack-${i}`)!;
  const [windows, queue] = curves.panels;
  assert.equal(windows!.traces.length, 10);
  assert.equal(queue!.traces.length, 20);
  for (const panel of curves.panels) {
    const looks = panel.traces.map((t) => `${seriesColour(t.colour)} ${t.dash}`);
    assert.equal(new Set(looks).size, looks.length, `${panel.key}: ${looks}`);
    for (const t of panel.traces) assert.equal(t.colour, Number(/^stack-(\d+)/.exec(t.label)![1]), `${panel.key}: ${t.label}`);
  }
  const solid = windows!.traces.filter((t) => t.dash.length === 0);
  assert.equal(solid.length, 8);
  const drawn = toText(panels(curves, "t", [0, 10]));
  assert.ok(drawn.includes('stroke-dasharray="2 3"'), "a range is dashed, too");
});

test("of more cases than there are looks it is said which are not laid over one another", () => {
  const all = Array.from({ length: 20 }, (_, i) => i);
  const { drawn, others } = overlay(all);
  assert.deepEqual([drawn.length, others.length], [16, 4]);
  assert.deepEqual([...drawn, ...others], all);
  assert.deepEqual(overlay(all.slice(0, 10)), { drawn: all.slice(0, 10), others: [] });
});

test("ticks of completion times are all different", () => {
  const one = { name: "a", colour: 0, quantiles: Float32Array.from([0.1, 0.2, 0.33]), finished: 1 };
  const words = toText(cdf({ title: "", xTitle: "s", curves: [one] }));
  const axis = [...words.matchAll(/text-anchor="middle"[^>]*>([^<]+)</g)].map((m) => m[1]!);
  assert.ok(axis.length > 3);
  assert.equal(new Set(axis).size, axis.length, axis.join(" "));
});

test("names of many curves stand in lines of their own, inside the drawing", () => {
  const m = model();
  const curves = curvesOf(m, 0)!;
  const [panel] = curves.panels;
  const many = { ...curves, panels: [{ ...panel!, traces: Array.from({ length: 8 }, (_, i) => ({ ...panel!.traces[0]!, label: `a flow with a long name, number ${i}` })) }] };
  const words = toText(panels(many, "t", [0, 10]));
  const places = [...words.matchAll(/<text x="([-0-9.]+)" y="([-0-9.]+)"[^>]*>a flow/g)].map((t) => [Number(t[1]), Number(t[2])] as const);
  assert.equal(places.length, 8);
  for (const [x, y] of places) assert.ok(x >= 16 && x < 884 && y > 0, `${x} ${y}`);
  assert.equal(new Set(places.map(String)).size, 8);
});
