// The frame of a drawn chart: ticks, grid, titles.

import { extent, linear, niceDomain, niceStep, tickText, ticks, type Scale } from "../scale.ts";
import { line, text, textWidth, type Mark } from "../svg.ts";

export interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
}

export interface YAxis {
  scale: Scale;
  marks: Mark[];
}

/** Room for the labels of a vertical axis over this domain. */
export function yRoom(domain: readonly [number, number], count: number, size = 11): number {
  const step = niceStep(domain[1] - domain[0], count);
  return Math.max(...ticks(domain[0], domain[1], count).map((t) => textWidth(tickText(t, step), size)), 12) + 8;
}

/** A vertical axis with its grid lines. */
export function yAxis(frame: Frame, domain: readonly [number, number], count: number, title?: string, size = 11): YAxis {
  const scale = linear(domain, [frame.top + frame.height, frame.top]);
  const step = niceStep(domain[1] - domain[0], count);
  const marks: Mark[] = [];
  for (const t of ticks(domain[0], domain[1], count)) {
    const y = scale(t);
    marks.push(line(frame.left, y, frame.left + frame.width, y, t === 0 ? "var(--rule)" : "var(--grid)"));
    marks.push(text(frame.left - 6, y + size * 0.36, tickText(t, step), { size, anchor: "end", fill: "var(--muted)" }));
  }
  if (title !== undefined) marks.push(text(frame.left, frame.top - 8, title, { size, fill: "var(--muted)" }));
  return { scale, marks };
}

/** A horizontal axis below the frame. */
export function xAxis(frame: Frame, domain: readonly [number, number], count: number, title?: string, size = 11): YAxis {
  const scale = linear(domain, [frame.left, frame.left + frame.width]);
  const step = niceStep(domain[1] - domain[0], count);
  const bottom = frame.top + frame.height;
  const marks: Mark[] = [line(frame.left, bottom, frame.left + frame.width, bottom, "var(--muted)")];
  for (const t of ticks(domain[0], domain[1], count)) {
    const x = scale(t);
    marks.push(line(x, bottom, x, bottom + 4, "var(--muted)"));
    marks.push(text(x, bottom + 5 + size, tickText(t, step), { size, anchor: "middle", fill: "var(--muted)" }));
  }
  if (title !== undefined) {
    marks.push(text(frame.left + frame.width, bottom + 12 + 2 * size, title, { size, anchor: "end", fill: "var(--muted)" }));
  }
  return { scale, marks };
}

/** From zero if the values are near it, to whole ticks. */
export function domainOf(values: Iterable<number>, count: number, fromZero = true): [number, number] {
  const e = extent([...values].filter(Number.isFinite));
  if (!e) return [0, 1];
  const low = fromZero && e[0] > 0 ? 0 : e[0];
  return niceDomain(low, e[1], count);
}
