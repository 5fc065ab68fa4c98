// Time series of one case, chosen by its place on every axis.

import { drawing, explorer, rows, type Explorer } from "../charts/series.ts";
import { curvesOf } from "../curves.ts";
import { el, select } from "../dom.ts";
import { figure } from "../figure.ts";
import { axisValue, axisWords, type Model } from "../model.ts";

export interface Explore {
  element: HTMLElement;
  /** Shows a case and brings it into view. */
  open: (caseIndex: number) => void;
}

export function explore(model: Model): Explore | undefined {
  const cases = model.cases.flatMap((c, i) => (c.curves ? [i] : []));
  if (cases.length === 0) return undefined;
  let chosen = cases[0]!;
  let current: Explorer | undefined;
  const pickers = el("div", { class: "pickers" });
  const title = (): string => [model.scenario.name, model.caseLabel(chosen)].filter((t) => t !== "").join(": ");
  const show = (i: number): void => {
    chosen = i;
    drawPickers();
    shown.renew();
  };
  const step = (by: number): void => show(cases[(cases.indexOf(chosen) + by + cases.length) % cases.length]!);
  const drawPickers = (): void => {
    if (cases.length < 2) return;
    const focused = (document.activeElement as HTMLElement | null)?.dataset["axis"];
    const choice = model.axes.map((axis, a) => {
      const box = select(
        axisWords(axis),
        axis.values.map((v, at) => ({ value: String(at), label: axisValue(v) })),
        String(model.cases[chosen]!.at[a]),
        (value) => {
          const wanted = model.cases[chosen]!.at.map((at, i) => (i === a ? Number(value) : at));
          // Where the matrix has no such case, the nearest one that has the chosen value.
          const score = (i: number): number => model.cases[i]!.at.filter((at, k) => at === wanted[k]).length;
          const fits = cases.filter((i) => model.cases[i]!.at[a] === Number(value));
          if (fits.length > 0) show(fits.reduce((best, i) => (score(i) > score(best) ? i : best)));
        },
      );
      box.querySelector("select")!.dataset["axis"] = String(a);
      return box;
    });
    const button = (words: string, about: string, by: number): HTMLElement => el("button", { type: "button", "aria-label": about, title: about, onclick: () => step(by) }, words);
    pickers.replaceChildren(...choice, button("‹ previous", "Previous case", -1), button("next ›", "Next case", 1));
    pickers.querySelector<HTMLElement>(`[data-axis="${focused}"]`)?.focus();
  };
  drawPickers();
  const seed = model.severalSeeds() ? ` Seed ${model.scenario.seeds[0]}, one of ${model.seeds()[1]}.` : "";
  const shown = figure({
    name: `${model.id}-series`,
    title: "Time series",
    note: `Drag across a panel to zoom, double-click for the whole run.${seed} Where a run has more rows than the page, a shaded range stands for them: smallest and largest value.`,
    controls: [pickers],
    height: 700,
    body: () => {
      current?.destroy();
      const curves = curvesOf(model, chosen);
      if (!curves) return el("p", {}, "This case kept no time series.");
      current = explorer(curves, (p) => (p.key === "cwnd" ? 220 : 130));
      return el("div", {}, el("p", { class: "case-name", "aria-live": "polite" }, title()), current.element);
    },
    svg: () => drawing(curvesOf(model, chosen)!, title(), current?.range() ?? [0, model.cases[chosen]!.simulated_s]),
    csv: () => rows(curvesOf(model, chosen)!),
  });
  const open = (i: number): void => {
    if (!cases.includes(i)) return;
    show(i);
    shown.element.scrollIntoView({ behavior: "smooth", block: "start" });
  };
  return { element: shown.element, open };
}
