// Losses inside the initial window: how often segment i is lost, and how often if the one before it
// was lost. Where the two differ losses come in bursts; where they agree they do not know of one
// another (Initial Spreading 2014).

import { seriesColour } from "../colour.ts";
import type { Cell } from "../csv.ts";
import type { Losses } from "../generated/data.ts";
import { linear } from "../scale.ts";
import { line, mark, path, polyline, svg, text, type Mark } from "../svg.ts";
import { domainOf, yAxis } from "./axes.ts";
import { dot, legend } from "./lines.ts";

export interface LossFigure {
  title: string;
  variants: { name: string; colour: number; losses: Losses }[];
}

export function losses(m: LossFigure, width = 560): Mark {
  const size = 11;
  const n = Math.max(2, ...m.variants.map((v) => v.losses.each.length));
  const all = m.variants.flatMap((v) => [...v.losses.each, ...v.losses.next]).filter((v): v is number => v !== null);
  const head = legend({ series: m.variants }, 52, width);
  const offset = m.title === "" ? -30 : 0;
  const frame = { left: 52, top: 74 + offset + head.height, width: width - 72, height: 210 };
  const bottom = frame.top + frame.height;
  const y = yAxis(frame, domainOf(all, 5), 5, "probability of loss", size);
  const x = linear([1, n], [frame.left + 16, frame.left + frame.width - 16]);
  const marks: Mark[] = m.title === "" ? [] : [text(12, 22, m.title, { size: 14, weight: 600 })];
  marks.push(mark("g", { transform: `translate(0 ${offset - 12})` }, ...head.marks), ...y.marks);
  const every = [1, 2, 5, 10, 20].find((k) => x(1 + k) - x(1) > 20) ?? 50;
  for (let i = 1; i <= n; i++) if (i % every === 0) marks.push(text(x(i), bottom + 16, String(i), { size, anchor: "middle", fill: "var(--muted)" }));
  marks.push(line(frame.left, bottom, frame.left + frame.width, bottom, "var(--muted)"), text(frame.left + frame.width, bottom + 32, "segment of the transfer", { size, anchor: "end", fill: "var(--muted)" }));
  for (const v of m.variants) {
    const colour = seriesColour(v.colour);
    const each = v.losses.each.map((p, i) => [x(i + 1), p === null ? NaN : y.scale(p)] as const);
    // P(i + 1 lost | i lost) stands at i + 1.
    const next = v.losses.next.map((p, i) => [x(i + 2), p === null ? NaN : y.scale(p)] as const);
    marks.push(path(polyline(each), colour, 1.2, { "stroke-dasharray": "4 3" }), path(polyline(next), colour, 1.7));
    for (const [px, py] of next) if (Number.isFinite(py)) marks.push(dot(v.colour, px, py, colour));
  }
  return svg(width, bottom + 44, m.title === "" ? "Losses inside the initial window" : m.title, marks);
}

export function rows(m: LossFigure): Cell[][] {
  const out: Cell[][] = [["variant", "segment", "transfers", "lost", "lost_if_previous_lost"]];
  for (const v of m.variants) v.losses.each.forEach((p, i) => out.push([v.name, i + 1, v.losses.transfers[i], p, i === 0 ? null : v.losses.next[i - 1]]));
  return out;
}
