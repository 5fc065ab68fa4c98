// The explorer: panels over one time axis, with a shared cursor and a shared zoom. uPlot draws; the
// same data as a drawing and as rows are made here.

import uPlot from "uplot";
import { seriesColour, THEMES } from "../colour.ts";
import type { Cell } from "../csv.ts";
import type { CaseCurves, Panel, Trace } from "../curves.ts";
import { el } from "../dom.ts";
import { number } from "../format.ts";
import { currentTheme } from "../theme.ts";
import { mark, rect, svg, text, textWidth, line, FONT, type Mark } from "../svg.ts";
import { domainOf, xAxis, yAxis } from "./axes.ts";
import { band } from "./sawtooth.ts";

export interface Explorer {
  element: HTMLElement;
  /** Seconds shown. */
  range: () => [number, number];
  reset: () => void;
  destroy: () => void;
}

/** A value of a curve: one number, or the ends of a range. */
export function valueText(low: number, high: number): string {
  if (Number.isNaN(low)) return "–";
  const [a, b] = [number(low), number(high)];
  return a === b ? a : `${a} – ${b}`;
}

export function explorer(curves: CaseCurves, heightOf: (panel: Panel) => number): Explorer {
  const end = curves.step * curves.rows;
  const sync = uPlot.sync(`case-${++serial}`);
  const plots: uPlot[] = [];
  let shown: [number, number] = [0, end];

  const zoom = (from: number, to: number): void => {
    // Less than a few rows is nothing to look at.
    const least = 4 * curves.step;
    const middle = (from + to) / 2;
    if (to - from < least) [from, to] = [middle - least / 2, middle + least / 2];
    shown = [Math.max(0, from), Math.min(end, to)];
    for (const plot of plots) plot.setScale("x", { min: shown[0], max: shown[1] });
    label.textContent = `${number(shown[0])} – ${number(shown[1])} s`;
  };
  const label = el("output", { class: "range", "aria-live": "polite" }, `0 – ${number(end)} s`);
  const button = (words: string, about: string, act: () => void): HTMLElement =>
    el("button", { type: "button", "aria-label": about, title: about, onclick: act }, words);
  const scaled = (factor: number): void => {
    const [middle, half] = [(shown[0] + shown[1]) / 2, ((shown[1] - shown[0]) / 2) * factor];
    zoom(middle - half, middle + half);
  };
  const moved = (by: number): void => {
    const span = shown[1] - shown[0];
    const from = Math.max(0, Math.min(end - span, shown[0] + by * span));
    zoom(from, from + span);
  };
  const bar = el(
    "div",
    { class: "controls noprint", role: "group", "aria-label": "Time axis" },
    button("−", "Zoom out", () => scaled(2)),
    button("+", "Zoom in", () => scaled(0.5)),
    button("‹", "Earlier", () => moved(-0.5)),
    button("›", "Later", () => moved(0.5)),
    button("All", "All of the run", () => zoom(0, end)),
    label,
  );
  const stack = el("div", { class: "panels" });
  const host = el("div", { class: "explorer noprint" }, bar, stack);

  for (const panel of curves.panels) {
    const box = el("div", {
      class: `panel panel-${panel.key}`,
      tabindex: 0,
      role: "group",
      "aria-label": `${panel.title}, ${panel.unit}. Arrow keys move the cursor, plus and minus zoom, 0 shows the whole run.`,
      "data-panel": panel.id,
    });
    box.append(el("div", { class: "panel-title" }, el("b", {}, panel.title), `, ${panel.unit}`));
    stack.append(box);
    const plot = new uPlot(
      {
        width: 900,
        height: heightOf(panel),
        cursor: { sync: { key: sync.key, setSeries: false }, drag: { x: true, y: false, setScale: true }, points: { size: 6 }, y: false },
        legend: { live: true, markers: { width: 0, fill: (u, i) => `var(--${(u.series[i] as Coloured).colourName ?? "ink"})` } },
        scales: { x: { time: false, range: (_u, low, high) => (low === curves.time[0] && high === curves.time.at(-1) ? shown : [low, high]) }, y: { range: (_u, low, high) => panelDomain(panel, [low ?? 0, high ?? 1]) } },
        axes: [
          { stroke: () => css("muted"), grid: { stroke: () => css("grid"), width: 1 }, ticks: { stroke: () => css("rule"), width: 1 }, font: `11px ${FONT}`, size: 26, values: (_u, at) => at.map((t) => `${Number(t.toPrecision(6))}`) },
          { stroke: () => css("muted"), grid: { stroke: () => css("grid"), width: 1 }, ticks: { show: false }, font: `11px ${FONT}`, size: 58, values: (_u, at) => at.map((t) => number(t, 3)) },
        ],
        series: [{ label: "time", value: (_u, t) => (t === null || t === undefined ? "–" : `${number(t)} s`) }, ...panel.traces.flatMap((t) => series(t))],
        bands: bands(panel.traces),
        hooks: {
          drawClear: [(u) => shade(u, curves.warmup)],
          setSeries: [(u, i, change) => i !== null && change.show !== undefined && switched(u, i, change.show)],
          setScale: [
            (u, key) => {
              const { min, max } = u.scales["x"]!;
              // uPlot tells of a change later, also of one that came from here.
              const same = (a: number, b: number): boolean => Math.abs(a - b) < 1e-6 * end;
              if (key !== "x" || typeof min !== "number" || typeof max !== "number") return;
              if (!same(min, shown[0]) || !same(max, shown[1])) zoom(min, max);
            },
          ],
        },
      },
      [curves.time, ...panel.traces.flatMap((t) => columns(t))] as unknown as uPlot.AlignedData,
      box,
    );
    plot.root.querySelectorAll(".u-series").forEach((row, i) => {
      if (i === 0) return;
      const name = row.querySelector<HTMLElement>(".u-label")!;
      for (const [key, value] of Object.entries({ role: "button", tabindex: "0", "aria-pressed": "true", title: "Show or hide" })) name.setAttribute(key, value);
      name.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        name.click();
      });
      const dash = plot.series[i]?.dash;
      if (!dash) return;
      row.classList.add("dashed");
      (row as HTMLElement).style.setProperty("--mark", marker(dash, `var(--${(plot.series[i] as Coloured).colourName})`));
    });
    // A double click shows the whole run; uPlot's own would ask the data.
    plot.over.addEventListener("dblclick", () => zoom(0, end));
    box.addEventListener("keydown", (event) => keys(event, plot));
    sync.sub(plot);
    plots.push(plot);
  }
  const keys = (event: KeyboardEvent, plot: uPlot): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = plot.cursor.idx ?? Math.round(((shown[0] + shown[1]) / 2) / curves.step);
    const rows = Math.max(1, Math.round((shown[1] - shown[0]) / curves.step / 100));
    const to = (row: number): void => {
      const index = Math.max(0, Math.min(curves.rows - 1, row));
      plot.setCursor({ left: plot.valToPos(curves.time[index]!, "x"), top: 10 });
    };
    const moves: Record<string, () => void> = {
      ArrowLeft: () => to(at - (event.shiftKey ? 10 : 1) * rows),
      ArrowRight: () => to(at + (event.shiftKey ? 10 : 1) * rows),
      Home: () => to(Math.ceil(shown[0] / curves.step)),
      End: () => to(Math.floor(shown[1] / curves.step) - 1),
      "+": () => scaled(0.5),
      "=": () => scaled(0.5),
      "-": () => scaled(2),
      "0": () => zoom(0, end),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  };
  const fit = new ResizeObserver(() => {
    const width = Math.floor(stack.clientWidth) - 2;
    if (width > 100) for (const [i, plot] of plots.entries()) plot.setSize({ width, height: heightOf(curves.panels[i]!) });
  });
  fit.observe(stack);
  const recolour = (): void => plots.forEach((p) => p.redraw(false));
  document.addEventListener("fullpipe:theme", recolour);
  return {
    element: host,
    range: () => shown,
    reset: () => zoom(0, end),
    destroy: () => {
      fit.disconnect();
      document.removeEventListener("fullpipe:theme", recolour);
      plots.forEach((p) => p.destroy());
    },
  };
}

let serial = 0;

/** The warm-up on a pale ground. */
function shade(u: uPlot, warmup: number): void {
  const { left, top, width, height } = u.bbox;
  const to = Math.min(left + width, u.valToPos(warmup, "x", true));
  const from = Math.max(left, u.valToPos(0, "x", true));
  if (warmup === 0 || to <= from) return;
  u.ctx.fillStyle = css("grid");
  u.ctx.fillRect(from, top, to - from, height);
}

/** The name of a curve says whether it is shown; the other end of a range goes with it. */
function switched(u: uPlot, i: number, show: boolean): void {
  u.root.querySelectorAll(".u-series")[i]?.querySelector(".u-label")?.setAttribute("aria-pressed", String(show));
  const low = u.series[i - 1];
  if (low?.class === "u-low" && low.show !== show) u.setSeries(i - 1, { show });
}

/** Windows, queues and rates start at zero; a round-trip time never does, and its changes are what counts. */
function panelDomain(panel: Panel, values: number[]): [number, number] {
  const fromZero = panel.key !== "rtt" && panel.key !== "ping";
  const [low, high] = domainOf(values, 4, fromZero);
  return fromZero || high - low > 0.1 * high ? [low, high] : [low - 0.05 * high, high + 0.05 * high];
}

function css(name: string): string {
  return THEMES[currentTheme()][name] ?? "#888888";
}

type Coloured = uPlot.Series & { colourName?: string };

/** The ground of a legend's marker: the dash, again and again. */
function marker(dash: readonly number[], colour: string): string {
  let at = 0;
  const stops = dash.map((length, i) => `${i % 2 === 0 ? colour : "transparent"} ${at}px ${(at += length)}px`);
  return `repeating-linear-gradient(90deg, ${stops.join(", ")})`;
}

/** A range is two series; the legend shows the second, with both values. */
function series(trace: Trace): uPlot.Series[] {
  const colourName = seriesColour(trace.colour).slice(6, -1);
  const dash = trace.dash.length > 0 ? { dash: [...trace.dash] } : {};
  const common = { stroke: () => css(colourName), width: trace.what === "ssthresh" ? 1.25 : 1.5, points: { show: false }, spanGaps: false, colourName, ...dash };
  if (trace.low === trace.high) {
    const value = (_u: uPlot, v: number | null): string => (v === null ? "–" : number(v));
    return [{ ...common, label: trace.label, value } as uPlot.Series];
  }
  const low = { ...common, label: "", value: () => "", class: "u-low" };
  const value = (u: uPlot, v: number | null, i: number, at: number | null): string => {
    const from = at === null ? null : (u.data[i - 1]?.[at] as number | null | undefined);
    return v === null || v === undefined || from === null || from === undefined ? "–" : valueText(from, v);
  };
  return [low as uPlot.Series, { ...common, label: trace.label, value } as uPlot.Series];
}

function columns(trace: Trace): (number | null)[][] {
  const gaps = (v: Float32Array): (number | null)[] => Array.from(v, (x) => (Number.isNaN(x) ? null : x));
  return trace.low === trace.high ? [gaps(trace.low)] : [gaps(trace.low), gaps(trace.high)];
}

function bands(traces: readonly Trace[]): uPlot.Band[] {
  const out: uPlot.Band[] = [];
  let at = 1;
  for (const trace of traces) {
    if (trace.low === trace.high) at += 1;
    else {
      const name = seriesColour(trace.colour).slice(6, -1);
      out.push({ series: [at + 1, at], fill: () => `${css(name)}59` });
      at += 2;
    }
  }
  return out;
}

/** What a sheet has between its margins, pixels: A4 and Letter. */
export const PAPER_WIDTH = 680;

/** Names of the curves: beside the title if there is room behind `from`, otherwise in lines of their own below it. */
function keysOf(traces: readonly Trace[], from: number, width: number): { marks: Mark[]; lines: number } {
  const room = traces.map((t) => 1.12 * textWidth(t.label, 11) + 40);
  const all = room.reduce((sum, w) => sum + w, 0);
  const beside = from + all <= width - 4;
  let [x, y] = beside ? [width - 4 - all, 0] : [16, 16];
  const marks = traces.flatMap((trace, i) => {
    if (!beside && x > 16 && x + room[i]! > width) [x, y] = [16, y + 16];
    const at = x;
    x += room[i]!;
    return [line(at, y - 4, at + 18, y - 4, seriesColour(trace.colour), 2.5, trace.dash.join(" ") || undefined), text(at + 24, y, trace.label, { size: 11 })];
  });
  return { marks, lines: y / 16 };
}

/** The panels over this part of the run, as a drawing; `id` tells its parts from those of others in one page. */
export function drawing(curves: CaseCurves, title: string, [from, to]: readonly [number, number], width = 900, id = "clip"): Mark {
  const [panelHeight, gap] = [150, 56];
  const marks: Mark[] = title === "" ? [] : [text(16, 24, title, { size: 15, weight: 600 })];
  let top = title === "" ? 26 : 64;
  curves.panels.forEach((panel, p) => {
    const heading = `${panel.title}, ${panel.unit}`;
    const keys = keysOf(panel.traces, 36 + 1.25 * textWidth(heading, 12), width);
    marks.push(text(16, top - 12, heading, { size: 12, weight: 600 }), mark("g", { transform: `translate(0 ${top - 12})` }, ...keys.marks));
    top += 16 * keys.lines;
    const inside = (v: Float32Array): number[] => Array.from(v).filter((_, i) => curves.time[i]! >= from && curves.time[i]! <= to);
    const domain = panelDomain(panel, panel.traces.flatMap((t) => [...inside(t.low), ...inside(t.high)]));
    const frame = { left: 64, top, width: width - 84, height: panelHeight };
    const y = yAxis(frame, domain, 4);
    const last = p === curves.panels.length - 1;
    const x = xAxis(frame, [from, to], 8, last ? "time, s" : undefined);
    const clip = `${id}-${panel.id}`;
    marks.push(mark("clipPath", { id: clip }, rect(frame.left, frame.top, frame.width, frame.height, "none")));
    if (curves.warmup > from) marks.push(rect(frame.left, frame.top, Math.min(frame.width, x.scale(curves.warmup) - frame.left), frame.height, "var(--grid)"));
    marks.push(...y.marks, ...x.marks);
    marks.push(mark("g", { "clip-path": `url(#${clip})` }, ...panel.traces.flatMap((t) => band(curves, t, x.scale, y.scale))));
    top += panelHeight + gap;
  });
  return svg(width, top, title === "" ? curves.panels.map((p) => p.title).join(", ") : title, marks);
}

/** One line per row of the grid. */
export function rows(curves: CaseCurves): Cell[][] {
  const traces = curves.panels.flatMap((p) => p.traces.map((t) => ({ p, t })));
  const head = traces.flatMap(({ p, t }) => {
    const name = `${t.what}_${p.unit} ${t.of}`;
    return t.low === t.high ? [name] : [`${name} low`, `${name} high`];
  });
  const out: Cell[][] = [["time_s", ...head]];
  for (let i = 0; i < curves.rows; i++) {
    out.push([curves.time[i], ...traces.flatMap(({ t }) => (t.low === t.high ? [t.low[i]] : [t.low[i], t.high[i]]))]);
  }
  return out;
}
