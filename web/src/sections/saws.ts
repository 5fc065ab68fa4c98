// All cases at a glance: small multiples of the congestion window.

import { commonTop, flowKeys, highest, saw, sheet, windows, SAW } from "../charts/sawtooth.ts";
import type { Cell } from "../csv.ts";
import { curvesOf } from "../curves.ts";
import type { FigureAsk } from "../generated/data.ts";
import { el, lazy } from "../dom.ts";
import { figure, fitted } from "../figure.ts";
import { counted } from "../format.ts";
import type { Model } from "../model.ts";
import { niceDomain } from "../scale.ts";
import { svg, toDom, type Mark } from "../svg.ts";

export function saws(model: Model, open: (caseIndex: number) => void): HTMLElement[] {
  return model.asked("cwnd").flatMap((ask, i) => one(model, ask, i === 0 ? "" : `-${i + 1}`, open) ?? []);
}

function one(model: Model, ask: FigureAsk, number: string, open: (caseIndex: number) => void): HTMLElement | undefined {
  const cases = model.cases.flatMap((c, i) => (c.curves ? [i] : []));
  if (cases.length < 2) return undefined;
  const panel = `cwnd${number}`;
  let shared = true;
  let tops: Map<number, number> | undefined;
  const topOf = (i: number): number => {
    if (shared) {
      // Decoded once, when the first cell is drawn.
      tops ??= new Map(cases.map((c) => [c, highest(curvesOf(model, c)!, panel)]));
      const common = commonTop([...tops.values()]);
      if (common !== undefined) return common;
      // Nothing is shared: the box would say what is not so.
      shared = box.checked = false;
      box.disabled = true;
      words.textContent = " one scale: not here, where a window is ten times another";
    }
    return niceDomain(0, highest(curvesOf(model, i)!, panel) || 1, 4)[1];
  };
  const label = (i: number): string => model.caseLabel(i);
  const cell = (i: number): HTMLElement => {
    const host = el("button", { type: "button", class: "saw", style: `width:${SAW.width}px;height:${SAW.height}px`, "aria-label": `Time series of ${label(i)}`, "data-case": i, onclick: () => open(i) });
    lazy(host, () => host.replaceChildren(toDom(saw(curvesOf(model, i)!, label(i), topOf(i), panel))));
    return host;
  };
  const keys = (y: number, room: number): { marks: Mark[]; end: number } | undefined => (model.flows().length > 1 ? flowKeys(curvesOf(model, cases[0]!)!, y, room, panel) : undefined);
  const legend = (room: number): Mark => {
    const { marks, end } = keys(14, room)!;
    return svg(room, end + 8, "Colours of the flows", marks);
  };
  const words = el("span", {}, " one scale");
  const box = el("input", { type: "checkbox", checked: true, onchange: () => ((shared = box.checked), shown.renew()) });
  const shown = figure({
    name: `${model.id}-sawtooth${number}`,
    title: ask.title ?? "Congestion window of every case, segments",
    note: `${counted(cases.length, "case")}${model.severalSeeds() ? ", the first seed of each" : ""}.`,
    hint: "Choose one to see its time series.",
    controls: [el("label", { class: "choice" }, box, words)],
    height: Math.ceil(cases.length / 4) * SAW.height,
    body: () => el("div", {}, model.flows().length > 1 && fitted(4 * SAW.width, legend), el("div", { class: "saws" }, ...cases.map(cell))),
    svg: () => sheet(cases.map((i) => saw(curvesOf(model, i)!, label(i), topOf(i), panel)), 4, `${model.scenario.name}: ${ask.title ?? "congestion window, segments"}`, keys(38, Math.min(4, cases.length) * SAW.width)),
    csv: (): Cell[][] => [
      ["case", "label", "flow", "time_s", "cwnd_low", "cwnd_high"],
      ...cases.flatMap((i) => {
        const curves = curvesOf(model, i)!;
        return windows(curves, panel).flatMap((t) => Array.from(curves.time, (time, row): Cell[] => [i, label(i), t.of, time, t.low[row], t.high[row]]));
      }),
    ],
  });
  return shown.element;
}
