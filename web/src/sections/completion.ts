// Short flows: distributions of completion times, and losses inside their first window.

import { cdf, rows as cdfRows, type Cdf } from "../charts/cdf.ts";
import { losses, rows as lossRows, type LossFigure } from "../charts/losses.ts";
import type { Axis, Completions } from "../generated/data.ts";
import { float32s } from "../decode.ts";
import { figure, fitted } from "../figure.ts";
import { counted } from "../format.ts";
import { axisLabel, combinations, type Model } from "../model.ts";

interface Panel {
  title: string;
  name: string;
  label: string;
  members: { name: string; colour: number; completions: Completions }[];
}

/** One panel per class of short flows and per value of every other axis; one curve per competitor.
 * Those that the scenario's file asks for take the place of these. */
export function panels(model: Model): Panel[] {
  const classes = [...new Set(model.cases.flatMap((c) => (c.completions ?? []).map((x) => x.name)))];
  const variant = model.competitors();
  const others: Axis[] = model.axes.filter((a) => a !== variant);
  const facets = others.length === 0 ? [{ at: new Map<Axis, number>(), label: "" }] : combinations(model, others);
  const wanted = model.asked("completion").flatMap(({ title = "Completion times", flow }) =>
    classes.filter((name) => name === (flow ?? name)).map((name) => ({ title, name })),
  );
  return wanted.flatMap(({ title, name }) =>
    facets.map((facet) => ({
      title,
      name,
      label: [classes.length > 1 ? name : "", facet.label].filter((t) => t !== "").join(", "),
      members: model.select(facet.at).flatMap((i) => {
        const completions = model.cases[i]!.completions?.find((c) => c.name === name);
        if (!completions) return [];
        const at = variant ? model.at(i, variant) : 0;
        return [{ name: variant ? axisLabel(variant, at) : name, colour: at, completions }];
      }),
    })),
  ).filter((p) => p.members.length > 0);
}

export function completionFigures(model: Model): HTMLElement[] {
  return panels(model).flatMap((panel, i) => {
    const drawn: Cdf = {
      title: panel.label === "" ? panel.title : `${panel.title} · ${panel.label}`,
      xTitle: "completion time, s",
      curves: panel.members.map((m) => ({ name: m.name, colour: m.colour, quantiles: float32s(m.completions.quantiles), finished: m.completions.finished / Math.max(1, m.completions.finished + m.completions.unfinished) })),
    };
    const total = panel.members.reduce((n, m) => n + m.completions.finished + m.completions.unfinished, 0);
    const unfinished = panel.members.reduce((n, m) => n + m.completions.unfinished, 0);
    const out = [
      figure({
        name: `${model.id}-completion-${i + 1}`,
        title: drawn.title,
        note: `${counted(total, "flow")}${unfinished > 0 ? `, ${unfinished} of them not finished: a curve ends below 1 for those` : ""}.`,
        height: 320,
        body: () => fitted(560, (width) => cdf({ ...drawn, title: "" }, width)),
        svg: () => cdf(drawn),
        csv: () => cdfRows(drawn),
      }).element,
    ];
    const lossy = panel.members.flatMap((m) => (m.completions.losses ? [{ name: m.name, colour: m.colour, losses: m.completions.losses }] : []));
    if (lossy.length > 0) {
      const lost: LossFigure = { title: panel.label === "" ? "Losses inside the first segments" : `Losses inside the first segments · ${panel.label}`, variants: lossy };
      out.push(
        figure({
          name: `${model.id}-losses-${i + 1}`,
          title: lost.title,
          note: "Dotted: part of the transfers that lost the segment. Solid: the same among those that lost the segment before it. Far apart: losses come in bursts.",
          height: 320,
          body: () => fitted(560, (width) => losses({ ...lost, title: "" }, width)),
          svg: () => losses(lost),
          csv: () => lossRows(lost),
        }).element,
      );
    }
    return out;
  });
}
