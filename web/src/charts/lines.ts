// A metric over a matrix key: one dot per case with its 95 % interval, dots of one competitor
// joined where the key is a quantity.

import { seriesColour, seriesDash } from "../colour.ts";
import type { Cell } from "../csv.ts";
import type { Estimate } from "../model.ts";
import { linear, logarithmic } from "../scale.ts";
import { line, mark, path, polyline, svg, text, textWidth, type Mark } from "../svg.ts";
import { domainOf, yAxis, yRoom } from "./axes.ts";

export interface Lines {
  title: string;
  xTitle: string;
  yTitle: string;
  /** Values of the key, with their number if they are quantities of one kind. */
  x: { label: string; value: number | undefined }[];
  series: { name: string; colour: number; points: (Estimate | undefined)[] }[];
}

/** Positions of the values: to scale if they are quantities, logarithmic if they span more than a decade. */
export function positions(x: Lines["x"], range: readonly [number, number]): { at: number[]; scaled: boolean } {
  const values = x.map((v) => v.value).filter((v): v is number => v !== undefined);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const distinct = new Set(values).size === x.length;
  if (x.length > 2 && values.length === x.length && distinct && low > 0) {
    const scale = (high / low > 10 ? logarithmic : linear)([low, high], range);
    const at = values.map(scale);
    // Labels need room; where the scale leaves none, the values stand side by side instead.
    const sorted = [...at].sort((a, b) => a - b);
    if (sorted.every((p, i) => i === 0 || p - sorted[i - 1]! > 34)) return { at, scaled: true };
  }
  const step = (range[1] - range[0]) / x.length;
  return { at: x.map((_, i) => range[0] + step * (i + 0.5)), scaled: false };
}

export function lines(m: Lines, width = 720): Mark {
  const size = 11;
  const ends = m.series.flatMap((s) => s.points.flatMap((p) => (p ? [p.mean, ...(Number.isFinite(p.low) ? [p.low, p.high] : [])] : [])));
  const domain = domainOf(ends, 5);
  const left = 14 + yRoom(domain, 5, size);
  const legendRows = legend(m, left, width);
  // Where the title stands elsewhere there is no line for it.
  const up = m.title === "" ? 26 : 0;
  const top = 56 - up + legendRows.height;
  const slanted = !fits(m, (width - left - 20) / m.x.length, size);
  const bottomRoom = slanted ? Math.min(150, 20 + 0.72 * Math.max(...m.x.map((v) => textWidth(v.label, size)))) : 26;
  const frame = { left, top, width: width - left - 20, height: 230 };
  const y = yAxis(frame, domain, 5, undefined, size);
  const { at, scaled } = positions(m.x, [frame.left + 24, frame.left + frame.width - 24]);
  const bottom = frame.top + frame.height;
  const marks: Mark[] = m.title === "" ? [] : [text(12, 22, m.title, { size: 14, weight: 600 })];
  marks.push(text(12, 42 - up, m.yTitle, { size, fill: "var(--muted)" }), mark("g", { transform: `translate(0 ${-up})` }, ...legendRows.marks), ...y.marks);
  marks.push(line(frame.left, bottom, frame.left + frame.width, bottom, "var(--muted)"));
  m.x.forEach((v, i) => {
    marks.push(line(at[i]!, bottom, at[i]!, bottom + 4, "var(--muted)"));
    const style = { size, fill: "var(--ink)", anchor: slanted ? ("end" as const) : ("middle" as const) };
    marks.push(text(at[i]! + (slanted ? 3 : 0), bottom + 17, v.label, slanted ? { ...style, rotate: -40 } : style));
  });
  marks.push(text(frame.left + frame.width, bottom + bottomRoom + 10, m.xTitle, { size, anchor: "end", fill: "var(--muted)" }));
  const between = scaled ? 0 : Math.min(9, (frame.width / m.x.length) * (0.7 / Math.max(1, m.series.length)));
  m.series.forEach((s, k) => {
    const colour = seriesColour(s.colour);
    const shift = (k - (m.series.length - 1) / 2) * between;
    const points = s.points.map((p, i) => (p ? ([at[i]! + shift, y.scale(p.mean)] as const) : ([NaN, NaN] as const)));
    if (scaled) {
      const dash = seriesDash(s.colour).join(" ");
      marks.push(path(polyline([...points].sort((a, b) => a[0] - b[0])), colour, 1.4, dash === "" ? {} : { "stroke-dasharray": dash }));
    }
    s.points.forEach((p, i) => {
      if (!p) return;
      const [px, py] = points[i]!;
      if (Number.isFinite(p.low)) {
        const [low, high] = [y.scale(p.low), y.scale(p.high)];
        marks.push(line(px, low, px, high, colour, 1.4), line(px - 4, low, px + 4, low, colour, 1.4), line(px - 4, high, px + 4, high, colour, 1.4));
      }
      marks.push(dot(s.colour, px, py, colour));
    });
  });
  return svg(width, bottom + bottomRoom + 22, m.title === "" ? `${m.yTitle} by ${m.xTitle}` : m.title, marks);
}

/** A shape per competitor, so that colour is not the only difference. */
export function dot(i: number, x: number, y: number, colour: string): Mark {
  const r = 4;
  const [a, b] = [Math.round(x * 100) / 100, Math.round(y * 100) / 100];
  const shapes = [
    (): Mark => mark("circle", { cx: a, cy: b, r, fill: colour }),
    (): Mark => mark("rect", { x: a - r + 0.4, y: b - r + 0.4, width: 2 * r - 0.8, height: 2 * r - 0.8, fill: colour }),
    (): Mark => mark("path", { d: `M${a} ${b - r - 1}L${a + r + 0.6} ${b + r - 0.6}L${a - r - 0.6} ${b + r - 0.6}Z`, fill: colour }),
    (): Mark => mark("path", { d: `M${a} ${b - r - 1}L${a + r + 1} ${b}L${a} ${b + r + 1}L${a - r - 1} ${b}Z`, fill: colour }),
    (): Mark => mark("circle", { cx: a, cy: b, r: r - 0.6, fill: "var(--bg)", stroke: colour, "stroke-width": 1.8 }),
  ];
  return shapes[i % shapes.length]!();
}

function fits(m: Lines, step: number, size: number): boolean {
  return m.x.every((v) => textWidth(v.label, size) < step - 6);
}

export function legend(m: { series: readonly { name: string; colour: number }[] }, left: number, width: number): { marks: Mark[]; height: number } {
  if (m.series.length < 2) return { marks: [], height: 0 };
  const marks: Mark[] = [];
  let [x, y] = [left, 60];
  for (const s of m.series) {
    const w = textWidth(s.name, 11.5) + 34;
    if (x + w > width - 10 && x > left) [x, y] = [left, y + 18];
    marks.push(dot(s.colour, x + 6, y - 4, seriesColour(s.colour)), text(x + 16, y, s.name, { size: 11.5 }));
    x += w;
  }
  return { marks, height: y - 60 + 20 };
}


export function rows(m: Lines): Cell[][] {
  const out: Cell[][] = [[m.xTitle, "series", "mean", "ci95_low", "ci95_high"]];
  for (const s of m.series) s.points.forEach((p, i) => p && out.push([m.x[i]!.label, s.name, p.mean, p.low, p.high]));
  return out;
}

