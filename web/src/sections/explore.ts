// Time series of one case, chosen by its place on every axis.

import { drawing, explorer, PAPER_WIDTH, rows, type Explorer } from "../charts/series.ts";
import { curvesOf, laidOver, overlay, type CaseCurves } from "../curves.ts";
import { el, prose, select } from "../dom.ts";
import { figure } from "../figure.ts";
import { counted } from "../format.ts";
import { toDom } from "../svg.ts";
import type { Axis } from "../generated/data.ts";
import { axisLabel, type Model } from "../model.ts";

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
  // The axis whose cases are laid over one another.
  let over: Axis | undefined;
  const laid = (): { drawn: number[]; others: number[] } => {
    if (!over) return overlay([chosen]);
    const [varied, here] = [model.axes.indexOf(over), model.cases[chosen]!.at];
    return overlay(cases.filter((i) => model.cases[i]!.at.every((at, a) => a === varied || at === here[a])));
  };
  const curves = (): CaseCurves | undefined => {
    const axis = over;
    return axis ? laidOver(model, laid().drawn, (i) => axisLabel(axis, model.at(i, axis))) : curvesOf(model, chosen);
  };
  const words = (): string => {
    if (!over) return model.caseLabel(chosen);
    const rest = model.axes.filter((a) => a !== over).map((a) => axisLabel(a, model.at(chosen, a)));
    return [`by ${over.heading}`, ...rest].join(", ");
  };
  const title = (): string => [model.scenario.name, words()].filter((t) => t !== "").join(": ");
  const show = (i: number): void => {
    chosen = i;
    drawPickers();
    shown.renew();
  };
  const step = (by: number): void => show(cases[(cases.indexOf(chosen) + by + cases.length) % cases.length]!);
  const drawPickers = (): void => {
    if (cases.length < 2) return;
    const focused = (document.activeElement as HTMLElement | null)?.dataset["axis"];
    const choice = model.axes.flatMap((axis, a) => {
      if (axis === over) return [];
      const box = select(
        axis.heading,
        axis.texts.map((label, at) => ({ value: String(at), label })),
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
      return [box];
    });
    const button = (words: string, about: string, by: number): HTMLElement => el("button", { type: "button", "aria-label": about, title: about, "data-axis": about, onclick: () => step(by) }, words);
    pickers.replaceChildren(...choice, button("‹ previous", "Previous case", -1), button("next ›", "Next case", 1));
    pickers.querySelector<HTMLElement>(`[data-axis="${focused}"]`)?.focus();
  };
  drawPickers();
  const several = model.axes.filter((axis) => axis.values.length > 1);
  const laying = select(
    "laid over one another",
    [{ value: "", label: "nothing" }, ...several.map((axis) => ({ value: axis.key, label: `every ${axis.heading}` }))],
    "",
    (key) => {
      over = several.find((axis) => axis.key === key);
      drawPickers();
      shown.renew();
    },
  );
  const seed = model.severalSeeds() ? `Seed ${model.scenario.seeds[0]}, one of ${model.seeds()[1]}. ` : "";
  const shown = figure({
    name: `${model.id}-series`,
    title: "Time series",
    note: `${seed}${model.cases.some((c) => c.warmup_s !== undefined) ? "The warm-up has a pale ground. " : ""}Where a run has more rows than the page, a shaded range stands for them: smallest and largest value.`,
    hint: "Drag across a panel to zoom, double-click for the whole run.",
    controls: several.length > 0 && cases.length > 1 ? [pickers, laying] : [pickers],
    height: 700,
    body: () => {
      current?.destroy();
      const drawn = curves();
      if (!drawn) return el("p", {}, "This case kept no time series.");
      current = explorer(drawn, (p) => (p.key === "cwnd" ? 220 : 130));
      const { drawn: here, others: apart } = laid();
      const others = cases.length - here.length;
      const where = others > 0 && el("p", { class: "note paper" }, ...prose(`${counted(others, "more case")}: choose on the page, or draw each with \`fullpipe figure DIR window --where KEY=VALUE\`.`));
      const names = apart.map((i) => axisLabel(over!, model.at(i, over!))).join(", ");
      const left = names !== "" && el("p", { class: "note" }, `The first ${here.length} of ${here.length + apart.length}; not drawn: ${names}.`);
      return el("div", {}, el("p", { class: "case-name", "aria-live": "polite" }, title()), left, current.element, paper, where);
    },
    svg: () => drawing(curves()!, title(), current?.range() ?? [0, model.cases[chosen]!.simulated_s]),
    csv: () => rows(curves()!),
  });
  shown.element.tabIndex = -1;
  // Drawings for paper: a panel of its own each, so that none is cut by the end of a page.
  const paper = el("div", { class: "paper" });
  document.addEventListener("fullpipe:paper", () => {
    const [drawn, range] = [curves(), current?.range()];
    if (drawn && range) paper.replaceChildren(...drawn.panels.map((p, i) => toDom(drawing({ ...drawn, panels: [p] }, "", range, PAPER_WIDTH, `${model.id}-${i}`))));
  });
  const open = (i: number): void => {
    if (!cases.includes(i)) return;
    show(i);
    // The keyboard goes on from there.
    shown.element.focus({ preventScroll: true });
    shown.element.scrollIntoView({ behavior: "smooth", block: "start" });
  };
  return { element: shown.element, open };
}
