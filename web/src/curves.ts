// The curves of a case, by panel: what the explorer and the small multiples draw.

import type { Curve } from "./generated/data.ts";
import { SERIES_COLOURS, sharedDash } from "./colour.ts";
import { curveColumns } from "./decode.ts";
import type { Model } from "./model.ts";

/** A curve of one flow, link or traffic: a range where the grid is coarser than the run. */
export interface Trace {
  what: Curve["what"];
  /** Flow, link or traffic. */
  of: string;
  label: string;
  low: Float32Array;
  high: Float32Array;
  /** Position among the flows, links or cases: its colour. */
  colour: number;
  /** Dash of its line; empty: solid. */
  dash: readonly number[];
}

/** What a panel shows: the kind of its curves, and of whom. */
interface Spec {
  /** Unlike that of every other panel. */
  id: string;
  key: string;
  title: string;
  unit: string;
  what: readonly Curve["what"][];
  /** The only flow or link that is drawn; without one all are. */
  of: string | undefined;
}

export interface Panel extends Spec {
  traces: Trace[];
}

export interface CaseCurves {
  step: number;
  rows: number;
  /** Time at the begin that means do not count, seconds. */
  warmup: number;
  /** Middle of every row, seconds. */
  time: Float64Array;
  panels: Panel[];
}

const WITH_THRESHOLD = "Congestion window and threshold";

const PANELS: Omit<Spec, "id" | "of">[] = [
  { key: "cwnd", title: WITH_THRESHOLD, unit: "segments", what: ["cwnd", "ssthresh"] },
  { key: "rtt", title: "Round-trip time", unit: "ms", what: ["rtt"] },
  { key: "queue", title: "Queue", unit: "packets", what: ["queue"] },
  { key: "goodput", title: "Goodput", unit: "Mbit/s", what: ["goodput"] },
  { key: "ping", title: "Round-trip time of pings", unit: "ms", what: ["ping"] },
  { key: "rate", title: "Arrivals of datagrams and short flows", unit: "Mbit/s", what: ["rate"] },
];

/** The panels of a scenario. Those that its file asks for (`[[report]]`) take the place of the one of
 * the same quantity. */
function specs(model: Model): Spec[] {
  return PANELS.flatMap((panel) =>
    model.asked(panel.key).map((ask, i) => ({ ...panel, id: `${panel.key}${i === 0 ? "" : `-${i + 1}`}`, title: ask.title ?? panel.title, of: ask.flow })),
  );
}

/** The curves of a panel among others; panels without one are left out. */
function panelsOf(model: Model, traces: readonly Trace[]): Panel[] {
  const panels = specs(model).map((s) => ({ ...s, traces: traces.filter((t) => s.what.includes(t.what) && t.of === (s.of ?? t.of)) }));
  return panels.filter((p) => p.traces.length > 0);
}

const cache = new WeakMap<object, CaseCurves>();

/** The curves of a case; undefined if the run kept none. */
export function curvesOf(model: Model, caseIndex: number): CaseCurves | undefined {
  const curves = model.cases[caseIndex]?.curves;
  if (!curves) return undefined;
  const known = cache.get(curves);
  if (known) return known;
  const layout = model.scenario.layouts[curves.layout] ?? [];
  const columns = curveColumns(curves);
  const order: string[] = [];
  const traces: Trace[] = [];
  layout.forEach((head, i) => {
    const column = columns[i];
    if (!column) return;
    if (head.stat === "high") {
      const pair = traces.find((t) => t.what === head.what && t.of === head.of);
      if (pair) pair.high = column;
      return;
    }
    const kind = head.what === "queue" ? `link ${head.of}` : head.of;
    if (!order.includes(kind)) order.push(kind);
    const same = order.filter((k) => k.startsWith("link ") === (head.what === "queue"));
    const colour = same.indexOf(kind);
    traces.push({
      what: head.what,
      of: head.of,
      label: label(model, caseIndex, head),
      low: column,
      high: column,
      colour,
      dash: head.what === "ssthresh" ? THRESHOLD : sharedDash(Math.floor(colour / SERIES_COLOURS)),
    });
  });
  const made: CaseCurves = {
    step: curves.step,
    rows: curves.rows,
    warmup: model.cases[caseIndex]?.warmup_s ?? 0,
    time: middles(curves.rows, curves.step),
    panels: panelsOf(model, traces),
  };
  cache.set(curves, made);
  return made;
}

/** Dash of a threshold: its window has the same colour. */
const THRESHOLD: readonly number[] = [6, 4];

/** Of cases that could be laid over one another those that are, and the others: beyond two curves of
 * a colour nobody tells them apart. */
export function overlay(cases: readonly number[]): { drawn: number[]; others: number[] } {
  const most = 2 * SERIES_COLOURS;
  return { drawn: cases.slice(0, most), others: cases.slice(most) };
}

/** Curves of several cases over one another, each under its own name, on the coarsest of their
 * grids; thresholds are left out. A case has one colour in every panel, and dashes tell apart what
 * shares it: its flows or links, and cases beyond the number of colours. */
export function laidOver(model: Model, cases: readonly number[], name: (caseIndex: number) => string): CaseCurves | undefined {
  const all = cases.flatMap((c) => {
    const curves = curvesOf(model, c);
    return curves ? [{ c, curves }] : [];
  });
  if (all.length === 0) return undefined;
  const step = Math.max(...all.map(({ curves }) => curves.step));
  const rows = Math.max(...all.map(({ curves }) => Math.ceil((curves.rows * curves.step) / step - 1e-9)));
  const rounds = Math.ceil(all.length / SERIES_COLOURS);
  const tracesIn = (id: string): Trace[] =>
    all.flatMap(({ c, curves }, at) => {
      const traces = curves.panels.find((p) => p.id === id)?.traces.filter((t) => t.what !== "ssthresh") ?? [];
      return traces.map((t, i): Trace => {
        // A case with one flow or link needs no name of it.
        const label = traces.length === 1 ? name(c) : `${name(c)}, ${t.of}`;
        const low = onGrid(t.low, curves.step, step, rows, Math.min);
        const high = t.low === t.high && curves.step === step ? low : onGrid(t.high, curves.step, step, rows, Math.max);
        return { what: t.what, of: label, label, low, high, colour: at, dash: sharedDash(i * rounds + Math.floor(at / SERIES_COLOURS)) };
      });
    });
  const panels = specs(model).map((s) => ({ ...s, title: s.title === WITH_THRESHOLD ? "Congestion window" : s.title, traces: tracesIn(s.id) }));
  const warmup = Math.max(...all.map(({ curves }) => curves.warmup));
  return { step, rows, warmup, time: middles(rows, step), panels: panels.filter((p) => p.traces.length > 0) };
}

/** A curve on a coarser grid, NaN behind its end. */
function onGrid(values: Float32Array, from: number, to: number, rows: number, pick: (a: number, b: number) => number): Float32Array {
  const out = new Float32Array(rows).fill(NaN);
  const per = to / from;
  for (let row = 0; row < rows; row++) {
    // Rows that lie in this one, by their middles.
    const [first, end] = [Math.ceil(row * per - 0.5), Math.min(values.length, Math.ceil((row + 1) * per - 0.5))];
    for (let i = first; i < end; i++) {
      const v = values[i]!;
      if (!Number.isNaN(v)) out[row] = Number.isNaN(out[row]!) ? v : pick(out[row]!, v);
    }
  }
  return out;
}

function middles(rows: number, step: number): Float64Array {
  return Float64Array.from({ length: rows }, (_, i) => (i + 0.5) * step);
}

function label(model: Model, caseIndex: number, head: Curve): string {
  if (head.what === "queue" || head.what === "ping") return head.of;
  const stack = model.values(head.what === "rate" ? "traffic" : "flow")?.kind(caseIndex, head.of);
  const streams = head.streams > 1 ? `, sum of ${head.streams}` : "";
  const name = stack === undefined || stack === "" ? head.of : `${head.of}: ${stack}`;
  return head.what === "ssthresh" ? `ssthresh, ${head.of}` : name + streams;
}
