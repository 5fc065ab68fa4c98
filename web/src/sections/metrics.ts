// `[[report]] figure = "metric"`: a metric over a key, with error bars.

import { lines, rows, type Lines } from "../charts/lines.ts";
import type { Axis, FigureAsk } from "../generated/data.ts";
import { figure, fitted } from "../figure.ts";
import { axisLabel, combinations, type Model } from "../model.ts";

/** Competitors in one picture; more become pictures of their own. */
const MOST_SERIES = 10;

export function metricFigures(model: Model): HTMLElement[] {
  const asks = model.scenario.figures.filter((f) => f.figure === "metric");
  return asks.flatMap((ask, i) => one(model, ask, i));
}

export function linesOf(model: Model, ask: FigureAsk): Lines[] {
  const metric = ask.y ?? ask.metric;
  const x = model.axes.find((a) => a.key === ask.x);
  if (metric === undefined || !x || !model.has(metric)) return [];
  const head = model.heading(metric, ask.flow);
  const title = ask.title ?? `${head} by ${x.heading}`;
  const competitors = model.competitors();
  let inner: Axis[] = model.axes.filter((a) => a !== x);
  let outer: Axis[] = [];
  if (combinations(model, inner).length > MOST_SERIES) {
    inner = competitors && competitors !== x ? [competitors] : inner.slice(0, 1);
    outer = model.axes.filter((a) => a !== x && !inner.includes(a));
  }
  const facets = outer.length === 0 ? [{ at: new Map<Axis, number>(), label: "" }] : combinations(model, outer);
  const every = combinations(model, inner);
  return facets.map((facet) => ({
    title: facet.label === "" ? title : `${title} · ${facet.label}`,
    xTitle: x.heading,
    yTitle: head,
    x: x.texts.map((label, at) => ({ label, value: x.numbers?.[at] })),
    series: every.map((s, colour) => ({
      name: inner.length === 1 ? axisLabel(inner[0]!, s.at.get(inner[0]!) ?? 0) : s.label,
      colour,
      points: x.values.map((_, at) => {
        const found = model.select(new Map([...facet.at, ...s.at, [x, at]]))[0];
        return found === undefined ? undefined : model.estimate(found, metric, ask.flow);
      }),
    })),
  }));
}

function one(model: Model, ask: FigureAsk, i: number): HTMLElement[] {
  const spread = model.severalSeeds() ? `Bars are 95 % intervals over the seeds.` : "One seed: there are no intervals.";
  return linesOf(model, ask).map((drawn, f, all) => {
    return figure({
      name: `${model.id}-metric-${i + 1}${all.length > 1 ? `-${f + 1}` : ""}`,
      title: drawn.title,
      note: spread,
      height: 330,
      body: () => fitted(720, (width) => lines({ ...drawn, title: "" }, width)),
      svg: () => lines(drawn),
      csv: () => rows(drawn),
    }).element;
  });
}
