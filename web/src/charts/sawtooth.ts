// Small multiples of the congestion window: one cell per case, time from left to right.

import { seriesColour } from "../colour.ts";
import type { CaseCurves, Trace } from "../curves.ts";
import { extent, linear, niceDomain, tickText } from "../scale.ts";
import { line, mark, path, polyline, round, svg, text, textWidth, type Mark } from "../svg.ts";

export const SAW = { width: 236, height: 118 };

/** Largest window of a case. */
export function highest(curves: CaseCurves, panel = "cwnd"): number {
  const traces = windows(curves, panel);
  const all = traces.flatMap((t) => extent(t.high.filter(Number.isFinite)) ?? []);
  return Math.max(0, ...all);
}

/** The windows in a panel of a case. */
export function windows(curves: CaseCurves, panel: string): Trace[] {
  return curves.panels.find((p) => p.id === panel)?.traces.filter((t) => t.what === "cwnd") ?? [];
}

/** One cell; `top` is the end of its vertical axis. */
export function saw(curves: CaseCurves, title: string, top: number, panel = "cwnd"): Mark {
  const frame = { left: 40, top: 20, width: SAW.width - 48, height: SAW.height - 40 };
  const end = curves.step * curves.rows;
  const x = linear([0, end], [frame.left, frame.left + frame.width]);
  const y = linear([0, top], [frame.top + frame.height, frame.top]);
  const bottom = frame.top + frame.height;
  const marks: Mark[] = [
    heading(title, 11, SAW.width - 8),
    line(frame.left, bottom, frame.left + frame.width, bottom, "var(--rule)"),
    line(frame.left, frame.top, frame.left + frame.width, frame.top, "var(--grid)"),
    text(frame.left - 5, frame.top + 4, tickText(top, top), { size: 10, anchor: "end", fill: "var(--muted)" }),
    text(frame.left - 5, bottom + 3, "0", { size: 10, anchor: "end", fill: "var(--muted)" }),
    text(frame.left + frame.width, bottom + 13, `${tickText(end, end / 10)} s`, { size: 10, anchor: "end", fill: "var(--muted)" }),
  ];
  for (const trace of windows(curves, panel)) marks.push(...band(curves, trace, x, y));
  return svg(SAW.width, SAW.height, `Congestion window of ${title}, up to ${top} segments over ${round(end)} s`, marks);
}

/** The range of a curve as an area with an outline. */
export function band(curves: CaseCurves, trace: Trace, x: (v: number) => number, y: (v: number) => number, width = 1.2): Mark[] {
  const colour = seriesColour(trace.colour);
  const dash = trace.dash.length > 0 ? { "stroke-dasharray": trace.dash.join(" ") } : {};
  if (trace.low === trace.high) {
    const points = [...trace.low].map((v, i) => [x(curves.time[i]!), y(v)] as const);
    return [path(polyline(points), colour, width, dash)];
  }
  // The range as one line from low to high and back within every row: a narrow row is a stroke, a
  // wide one an area.
  const points: [number, number][] = [];
  let previous = NaN;
  for (let i = 0; i < curves.rows; i++) {
    const [low, high] = [trace.low[i]!, trace.high[i]!];
    const at = x(curves.time[i]!);
    if (Number.isNaN(low)) points.push([at, NaN]);
    else if (low === high) points.push([at, y(low)]);
    else if (Math.abs(previous - low) < Math.abs(previous - high)) points.push([at, y(low)], [at, y(high)]);
    else points.push([at, y(high)], [at, y(low)]);
    previous = points.at(-1)![1] === y(low) ? low : high;
  }
  return [path(polyline(points), colour, width, dash)];
}

/** A label in bold letters: narrower ones where they would not have room, and as many as have it then. */
function heading(label: string, size: number, room: number): Mark {
  // The widest of the common fonts.
  const width = (words: string): number => 1.25 * textWidth(words, size);
  let most = label.length;
  while (most > 1 && width(shorten(label, most)) > room / 0.8) most -= 1;
  const words = shorten(label, most);
  const made = text(4, 12, words, { size, weight: 600 });
  return width(words) > room ? { ...made, attrs: { ...made.attrs, textLength: room, lengthAdjust: "spacingAndGlyphs" } } : made;
}

export function shorten(label: string, length: number): string {
  return label.length <= length ? label : `${label.slice(0, length - 1)}…`;
}

/** Which colour is which flow: a line and its name, side by side as far as there is room; `end` is where the last line stands. */
export function flowKeys(curves: CaseCurves, y: number, room: number, panel = "cwnd"): { marks: Mark[]; end: number } {
  const marks: Mark[] = [];
  let x = 4;
  for (const trace of windows(curves, panel)) {
    const width = 1.12 * textWidth(trace.of, 11.5) + 24;
    if (x > 4 && x + width > room) [x, y] = [4, y + 18];
    marks.push(line(x, y - 4, x + 18, y - 4, seriesColour(trace.colour), 2.5, trace.dash.join(" ") || undefined), text(x + 24, y, trace.of, { size: 11.5 }));
    x += width + 20;
  }
  return { marks, end: y };
}

/** Cells side by side, as one drawing; `keys` below its title. */
export function sheet(cells: readonly Mark[], columns: number, title: string, keys?: { marks: readonly Mark[]; end: number }): Mark {
  const top = keys ? keys.end + 10 : 28;
  const placed = cells.map((cell, i) => {
    const [x, y] = [(i % columns) * SAW.width, top + Math.floor(i / columns) * SAW.height];
    return mark("g", { transform: `translate(${x} ${y})` }, ...cell.children.slice(1));
  });
  const height = top + Math.ceil(cells.length / columns) * SAW.height;
  return svg(SAW.width * Math.min(columns, cells.length), height, title, [text(8, 18, title, { size: 14, weight: 600 }), ...(keys?.marks ?? []), ...placed]);
}

/** A common end of the vertical axes, if the windows are of one order of magnitude. */
export function commonTop(tops: readonly number[]): number | undefined {
  const e = extent(tops.filter((t) => t > 0));
  return e && e[1] / e[0] < 10 ? niceDomain(0, e[1], 4)[1] : undefined;
}
