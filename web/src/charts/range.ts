// A bound as a band and the observed value as a dot on it.

import type { Expected } from "../generated/data.ts";
import { linear } from "../scale.ts";
import { line, mark, rect, svg, type Mark } from "../svg.ts";

/** What the bar shows: both ends of the bound, the value, its interval, and some room. */
export function rangeDomain(e: Expected): [number, number] {
  const values = [e.bound[0], e.bound[1], e.observed, e.ci95?.[0], e.ci95?.[1]].filter((v): v is number => typeof v === "number");
  let low = Math.min(...values);
  let high = Math.max(...values);
  const span = high - low || Math.abs(high) || 1;
  low -= 0.18 * span;
  high += 0.18 * span;
  return [low, high];
}

export const RANGE_WIDTH = 180;
const HEIGHT = 22;

export function range(e: Expected, words: string): Mark {
  const domain = rangeDomain(e);
  const x = linear(domain, [4, RANGE_WIDTH - 4]);
  const middle = HEIGHT / 2;
  const [low, high] = e.bound;
  const from = low === null ? 0 : x(low);
  const to = high === null ? RANGE_WIDTH : x(high);
  const colour = !e.pass ? "var(--bad)" : e.unclear ? "var(--muted)" : "var(--good)";
  const marks: Mark[] = [
    line(0, middle, RANGE_WIDTH, middle, "var(--rule)"),
    rect(from, middle - 6, Math.max(to - from, 1.5), 12, "var(--muted)", { "fill-opacity": 0.22, rx: 2 }),
  ];
  if (low !== null) marks.push(line(from, middle - 7, from, middle + 7, "var(--muted)", 1.5));
  if (high !== null) marks.push(line(to, middle - 7, to, middle + 7, "var(--muted)", 1.5));
  if (e.ci95) marks.push(line(x(e.ci95[0]), middle, x(e.ci95[1]), middle, colour, 2));
  if (e.observed !== null) {
    const at = x(e.observed);
    // The shape says it as well as the colour.
    marks.push(
      e.pass
        ? mark("circle", { cx: Math.round(at * 100) / 100, cy: middle, r: 4.5, fill: colour })
        : mark("path", { d: `M${at} ${middle - 6}L${at + 6} ${middle}L${at} ${middle + 6}L${at - 6} ${middle}Z`, fill: colour }),
    );
  }
  return svg(RANGE_WIDTH, HEIGHT, words, marks);
}

