// Distributions: the part of short flows that were complete within a time.

import { seriesColour, seriesDash } from "../colour.ts";
import type { Cell } from "../csv.ts";
import { linear, logarithmic, logTicks, niceStep, tickText, ticks } from "../scale.ts";
import { line, path, polyline, svg, text, type Mark } from "../svg.ts";
import { legend } from "./lines.ts";

export interface Cdf {
  title: string;
  xTitle: string;
  curves: CdfCurve[];
}

export interface CdfCurve {
  name: string;
  colour: number;
  /** Values at equal steps of the distribution of what finished, ascending. */
  quantiles: Float32Array;
  /** Part that finished: the curve ends there. */
  finished: number;
}

/** Part of all that took at most `value`; between quantiles on a straight line. */
export function fraction(curve: CdfCurve, value: number): number {
  const q = curve.quantiles;
  const last = q.length - 1;
  if (last < 0 || value < q[0]!) return 0;
  if (value >= q[last]!) return curve.finished;
  let [low, high] = [0, last];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (q[middle]! <= value) low = middle;
    else high = middle;
  }
  const within = q[high]! > q[low]! ? (value - q[low]!) / (q[high]! - q[low]!) : 0;
  return (curve.finished * (low + within)) / last;
}

export function cdf(m: Cdf, width = 560): Mark {
  const size = 11;
  const all = m.curves.flatMap((c) => (c.quantiles.length > 0 ? [c.quantiles[0]!, c.quantiles.at(-1)!] : []));
  const [low, high] = [Math.max(Math.min(...all), 1e-6), Math.max(...all)];
  const log = high / low > 8;
  const head = legend(m.curves.length > 1 ? { series: m.curves } : { series: [] }, 44, width);
  const top = (m.title === "" ? 26 : 52) + head.height;
  const shift = m.title === "" ? -26 : 0;
  const frame = { left: 44, top, width: width - 64, height: 220 };
  const bottom = frame.top + frame.height;
  const x = log ? logarithmic([low * 0.95, high * 1.05], [frame.left, frame.left + frame.width]) : linear([0, high * 1.02], [frame.left, frame.left + frame.width]);
  const y = linear([0, 1], [bottom, frame.top]);
  const marks: Mark[] = m.title === "" ? [] : [text(12, 22, m.title, { size: 14, weight: 600 })];
  marks.push(...head.marks.map((h) => ({ tag: "g", attrs: { transform: `translate(0 ${shift - 12})` }, children: [h] })));
  for (const t of [0, 0.25, 0.5, 0.75, 1]) {
    marks.push(line(frame.left, y(t), frame.left + frame.width, y(t), "var(--grid)"), text(frame.left - 6, y(t) + 4, t.toFixed(2), { size, anchor: "end", fill: "var(--muted)" }));
  }
  const most = width < 420 ? 4 : 7;
  for (const t of log ? logTicks(low * 0.95, high * 1.05, most + 2) : ticks(0, high, most)) {
    marks.push(line(x(t), frame.top, x(t), bottom, "var(--grid)"), line(x(t), bottom, x(t), bottom + 4, "var(--muted)"));
    marks.push(text(x(t), bottom + 17, tickText(t, log ? t : niceStep(high, most)), { size, anchor: "middle", fill: "var(--muted)" }));
  }
  marks.push(line(frame.left, bottom, frame.left + frame.width, bottom, "var(--muted)"));
  for (const c of m.curves) {
    const last = c.quantiles.length - 1;
    if (last < 0) continue;
    const points = [...c.quantiles].map((v, i) => [x(Math.max(v, low * 0.95)), y((c.finished * i) / Math.max(1, last))] as const);
    const dash = seriesDash(c.colour).join(" ");
    marks.push(path(polyline(points), seriesColour(c.colour), 1.7, dash === "" ? {} : { "stroke-dasharray": dash }));
  }
  marks.push(text(frame.left + frame.width, bottom + 34, m.xTitle, { size, anchor: "end", fill: "var(--muted)" }));
  marks.push(text(frame.left, frame.top - 8, "part of the flows", { size, fill: "var(--muted)" }));
  return svg(width, bottom + 44, m.title === "" ? "Distribution of completion times" : m.title, marks);
}

export function rows(m: Cdf): Cell[][] {
  const out: Cell[][] = [["curve", "fraction", m.xTitle]];
  for (const c of m.curves) {
    const last = Math.max(1, c.quantiles.length - 1);
    c.quantiles.forEach((v, i) => out.push([c.name, (c.finished * i) / last, v]));
  }
  return out;
}
