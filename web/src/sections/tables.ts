// Throughput, stability, fairness, asymmetry: the matrix of the scenario as coloured tables.

import { coloursOf, drawing, rows, table, type CellStyle, type Matrix, type MatrixCell } from "../charts/matrix.ts";
import type { Axis, FigureAsk, Metric } from "../generated/data.ts";
import { el, prose, select } from "../dom.ts";
import { figure } from "../figure.ts";
import { unit } from "../format.ts";
import { combinations, type Model } from "../model.ts";

/** Columns of one table; more become tables of their own. */
const MOST_COLUMNS = 10;

export interface Layout {
  row: Axis;
  /** Outer to inner. */
  columns: Axis[];
  /** Axes with one table per value. */
  facets: Axis[];
}

/** Rows are competitors, columns the axis with most values inside, the others around it. */
export function layoutOf(model: Model, row: Axis): Layout {
  const rest = model.axes.filter((a) => a !== row).sort((a, b) => a.values.length - b.values.length);
  const facets: Axis[] = [];
  const wide = (columns: readonly Axis[]): number => combinations(model, columns).length;
  while (rest.length > 1 && wide(rest) > MOST_COLUMNS) facets.push(rest.shift()!);
  return { row, columns: rest, facets };
}

/** A metric over rows and columns; `where` fixes the other axes. `of` names a flow or a link. */
export function matrix(model: Model, metric: string, of: string | undefined, layout: Layout, where: ReadonlyMap<Axis, number>, title: string, all?: Iterable<number>): Matrix {
  const entry = model.metric(metric, of);
  const columns = combinations(model, layout.columns).filter((c) => model.select(new Map([...where, ...c.at])).length > 0);
  const cells = layout.row.values.map((_, r) =>
    columns.map((c): MatrixCell | undefined => {
      const at = model.select(new Map([...where, ...c.at, [layout.row, r]]))[0];
      const estimate = at === undefined ? undefined : model.estimate(at, metric, of);
      return at === undefined || !estimate ? undefined : { estimate, case: at };
    }),
  );
  const values = all ?? cells.flat().flatMap((c) => (c ? [c.estimate.mean] : []));
  return {
    title,
    rowHead: layout.row.heading,
    rows: layout.row.texts,
    columnHeads: layout.columns.length === 0 ? [{ title: "", heads: [{ label: model.title(metric, of), span: 1 }] }] : heads(layout.columns, columns.map((c) => c.at)),
    cells,
    style: { colours: coloursOf(values, entry?.signed ?? false), count: entry?.count ?? false, digits: 4, unit: unit(entry?.unit ?? "") },
  };
}

/** A metric of one flow, class of short flows, link, or case. */
interface Column {
  metric: string;
  of: string | undefined;
  head: string;
}

/** The flows of the only case, one row each, with these metrics. */
function flowByFlow(model: Model, flows: readonly string[], asked: readonly string[]): Matrix {
  const kind = (of: string): string => model.values("flow")?.kind(0, of) ?? "";
  const values = (metric: string): number[] => flows.flatMap((of) => model.estimate(0, metric, of)?.mean ?? []);
  const metrics = asked.filter((m) => values(m).length > 0);
  return {
    title: "Flows",
    rowHead: "flow",
    rows: flows.map((of) => (kind(of) === "" ? of : `${of}: ${kind(of)}`)),
    columnHeads: [{ title: "", heads: metrics.map((m) => ({ label: model.heading(m, flows[0]), span: 1 })) }],
    cells: flows.map((of) =>
      metrics.map((m) => {
        const estimate = model.estimate(0, m, of);
        return estimate && { estimate, case: 0 };
      }),
    ),
    style: metrics.map((metric) => styleOf(model, { metric, of: flows[0], head: "" }, values(metric))),
  };
}

/** How a column of one metric is drawn: with a scale of its own. */
function styleOf(model: Model, { metric, of }: Column, values: readonly number[]): CellStyle {
  const m = model.metric(metric, of);
  return { colours: coloursOf(values, m?.signed ?? false), count: m?.count ?? false, digits: 4, unit: unit(m?.unit ?? "") };
}

/** Metrics side by side, one row per case, named by its value on `row` or by all that tells it apart. */
function sideBySide(model: Model, row: Axis | undefined, columns: readonly Column[]): Matrix {
  const values = ({ metric, of }: Column): number[] => model.cases.flatMap((_, c) => model.estimate(c, metric, of)?.mean ?? []);
  const shown = columns.filter((c) => values(c).length > 0);
  return {
    title: "Cases",
    rowHead: row ? row.heading : "case",
    rows: model.cases.map((_, c) => (row ? model.value(c, row) : model.caseLabel(c) || model.scenario.name)),
    columnHeads: [{ title: "", heads: shown.map((c) => ({ label: c.head, span: 1 })) }],
    cells: model.cases.map((_, c) =>
      shown.map(({ metric, of }) => {
        const estimate = model.estimate(c, metric, of);
        return estimate && { estimate, case: c };
      }),
    ),
    style: shown.map((c) => styleOf(model, c, values(c))),
  };
}

/** The tables with a row per case. A table of one flow has no numbers of the short flows beside it:
 * where there are several flows, every class has its columns in a table of their own; and where
 * there are several links, so has every link, which not every flow need cross. */
export function allCases(model: Model, row: Axis | undefined): { name: string; title: string; made: Matrix }[] {
  const flows = model.flows();
  const asked = model.scenario.side_by_side;
  const isOfClasses = (metric: string, of: string | undefined): boolean => model.scopeOf(metric, of) === "traffic";
  const own = (metric: string, of: string | undefined): Column => ({ metric, of, head: model.heading(metric, of) });
  const isOfLinks = (metric: string): boolean => model.scopeOf(metric) === "link" && model.links(metric).length > 1;
  const links = (metric: string): Column[] => model.links(metric).map((of) => ({ metric, of, head: `${of}: ${model.heading(metric, of)}` }));
  const classes = (metric: string): Column[] => model.traffic().map((of) => ({ metric, of, head: `${of}: ${model.heading(metric, of)}` }));
  if (flows.length < 2) {
    const of = flows[0];
    const columns = asked.flatMap((metric) =>
      isOfClasses(metric, of) ? classes(metric) : isOfLinks(metric) ? links(metric) : [own(metric, of)],
    );
    return [{ name: "cases", title: "All cases", made: sideBySide(model, row, columns) }];
  }
  const columnsOf = (of: string): Column[] => asked.filter((metric) => !isOfClasses(metric, of) && !isOfLinks(metric)).map((metric) => own(metric, of));
  // A table of each flow would have one row; what they do together is one number for all of them.
  const isOfOne = (metric: string): boolean => model.scopeOf(metric, flows[0]) === "flow";
  const together = columnsOf(flows[0]!).filter((c) => !isOfOne(c.metric));
  const tables =
    model.cases.length === 1
      ? [
          { name: "flows", title: "All flows", made: flowByFlow(model, flows, asked.filter(isOfOne)) },
          ...(together.length === 0 ? [] : [{ name: "together", title: "All flows together", made: sideBySide(model, row, together) }]),
        ]
      : flows.map((of) => ({ name: `cases-${of}`, title: `All cases, flow ${of}`, made: sideBySide(model, row, columnsOf(of)) }));
  const more = (name: string, title: string, columns: Column[]): typeof tables =>
    columns.length === 0 ? [] : [{ name, title, made: sideBySide(model, row, columns) }];
  const ofClasses = asked.filter((metric) => isOfClasses(metric, undefined)).flatMap(classes);
  const ofLinks = asked.filter(isOfLinks).flatMap(links);
  return [...tables, ...more("classes", "All cases, short flows", ofClasses), ...more("cases-links", "All cases, links", ofLinks)];
}

/** What the terminal says of pings. */
const OF_PINGS = ["rtt_ms.mean", "rtt_ms.p95", "rtt_inflation", "loss_rate"];

/** The table of all pings, a row per case; none without pings. */
export function pings(model: Model, row: Axis | undefined): { name: string; title: string; made: Matrix }[] {
  const kind = (c: number, name: string): string | undefined => model.values("traffic")?.kind(c, name);
  const probes = model.traffic().filter((name) => model.cases.some((_, c) => kind(c, name) === "ping"));
  const columns = probes.flatMap((of) => OF_PINGS.map((metric) => ({ metric, of, head: `${of}: ${model.heading(metric, of)}` })));
  return columns.length === 0 ? [] : [{ name: "pings", title: "All cases, pings", made: sideBySide(model, row, columns) }];
}

/** Nested headings: equal neighbours of an outer level share one. */
function heads(axes: readonly Axis[], columns: readonly Map<Axis, number>[]): Matrix["columnHeads"] {
  return axes.map((axis, depth) => {
    const level: { label: string; span: number; key: string }[] = [];
    for (const at of columns) {
      const key = axes.slice(0, depth + 1).map((a) => at.get(a)).join(" ");
      const last = level.at(-1);
      if (last && last.key === key && depth < axes.length - 1) last.span += 1;
      else level.push({ label: axis.texts[at.get(axis) ?? 0] ?? "", span: 1, key });
    }
    return { title: axis.heading, heads: level };
  });
}

interface Asked {
  name: string;
  title: string;
  metric: string;
  of?: string | undefined;
  note?: string | undefined;
  layout: Layout;
  /** Metrics to choose from. */
  choice?: boolean;
}

/** One figure per table. */
function tableFigures(model: Model, asked: Asked, open: (caseIndex: number) => void): HTMLElement[] {
  const { layout } = asked;
  const facets = layout.facets.length === 0 ? [{ at: new Map<Axis, number>(), label: "" }] : combinations(model, layout.facets);
  // Where the metric is chosen, so is which of the tables is shown.
  return (asked.choice ? facets.slice(0, 1) : facets).map((first, i) => {
    let facet = first;
    let metric = asked.metric;
    let of = asked.of;
    const made = (): Matrix => {
      const words = asked.choice ? model.heading(metric, of) : asked.title;
      const title = facet.label === "" ? words : `${words} · ${facet.label}`;
      // One scale for all tables of a metric.
      const values = model.cases.flatMap((_, c) => model.estimate(c, metric, of)?.mean ?? []);
      return matrix(model, metric, of, layout, facet.at, title, values);
    };
    const elsewhere = `Every other metric: choose it on the page, or \`fullpipe figure DIR matrix --metric NAME\`.`;
    const controls = asked.choice
      ? choices(model, metric, of, (m, o) => {
          metric = m;
          of = o;
          shown.renew();
        })
      : [];
    if (asked.choice && facets.length > 1) {
      const options = facets.map((f, at) => ({ value: String(at), label: f.label }));
      controls.push(select("Of", options, "0", (at) => ((facet = facets[Number(at)]!), shown.renew())));
    }
    const shown = figure({
      name: `${model.id}-${asked.name}${facets.length > 1 && !asked.choice ? `-${i + 1}` : ""}`,
      title: facet.label === "" || asked.choice ? asked.title : `${asked.title} · ${facet.label}`,
      ...(i === 0 && asked.note !== undefined ? { note: asked.note } : {}),
      controls,
      height: 60 + 26 * layout.row.values.length,
      // On paper there is no choice to read the metric from.
      body: () => (asked.choice ? el("div", {}, el("p", { class: "case-name paper" }, made().title), table(made(), open), el("p", { class: "note paper" }, ...prose(elsewhere))) : table(made(), open)),
      svg: () => drawing(made()),
      csv: () => rows(made()),
    });
    return shown.element;
  });
}

function choices(model: Model, metric: string, of: string | undefined, pick: (metric: string, of: string | undefined) => void): HTMLElement[] {
  const names = [...model.flows(), ...model.traffic()];
  const metricsOf = (name: string | undefined): Metric[] =>
    model.page.metrics.filter((m) => (m.scope === "case" || m.scope === "link" || model.scopeOf(m.name, name) === m.scope) && model.values(m.scope)?.metrics().includes(m.name) && (m.scope === "case" || m.scope === "link" || model.values(m.scope)!.names().includes(name ?? "")));
  const options = (name: string | undefined): { value: string; label: string }[] => metricsOf(name).map((x) => ({ value: x.name, label: x.heading }));
  let [m, o] = [metric, of ?? names[0]];
  const metrics = select("Metric", options(o), metric, (v) => pick((m = v), o));
  if (names.length < 2) return [metrics];
  const box = metrics.querySelector("select")!;
  const flows = select("Flow", names.map((n) => ({ value: n, label: n })), o ?? "", (v) => {
    o = v;
    const there = options(v);
    if (!there.some((x) => x.value === m)) m = there[0]?.value ?? m;
    box.replaceChildren(...there.map((x) => el("option", { value: x.value, selected: x.value === m }, x.label)));
    pick(m, o);
  });
  return [metrics, flows];
}

/** What a metric is, and who is who in a table of pairs. */
function noteOf(model: Model, metric: string, row?: Axis): string | undefined {
  const m = model.metric(metric);
  if (!m) return undefined;
  const words = `${m.about}: ${m.formula} (${m.source}).`.replace(/`/g, "");
  const pair = model.pair();
  if (metric !== "asymmetry" || !pair || (row !== pair.first && row !== pair.second)) return words;
  const [more, less] = row === pair.first ? ["row", "column"] : ["column", "row"];
  return `${words} Above zero (orange) the ${more} takes more, below zero (blue) the ${less} does.`;
}

export function tables(model: Model, open: (caseIndex: number) => void): HTMLElement[] {
  const out: HTMLElement[] = [];
  const row = model.competitors();
  const note = "Every column has a colour scale of its own.";
  const whole = ({ name, title, made }: { name: string; title: string; made: Matrix }): HTMLElement =>
    figure({ name: `${model.id}-${name}`, title, note, height: 80, body: () => table(made, open), svg: () => drawing({ ...made, title }), csv: () => rows(made) }).element;
  if (!row || model.axes.length < 2) return [...allCases(model, row), ...pings(model, row)].map(whole);
  const layout = layoutOf(model, row);
  const pair = model.pair();
  const flow = model.flowOf(row) ?? model.flows()[0];
  const has = (metric: string): boolean => model.scopeOf(metric, flow) !== "traffic" && model.cases.some((_, c) => model.estimate(c, metric, flow) !== undefined);
  const several = model.flows().length > 1;
  const throughput = several && has("aggregate_goodput_mbps") ? "aggregate_goodput_mbps" : "goodput_mbps";
  // A table that the scenario asks for takes the place of the one that would be made by itself.
  const askedFor = (metric: string, of: string | undefined, axes: readonly Axis[]): boolean =>
    model.scenario.figures.some((f) => f.figure === "matrix" && f.metric === metric && (f.flow ?? flow) === (of ?? flow) && axes.length === 2 && axes.every((a) => a.key === f.x || a.key === f.y));
  const shownAxes = [layout.row, ...layout.columns];
  const cells = el("div", { class: "tables" });
  if (has(throughput) && !askedFor(throughput, flow, shownAxes)) {
    out.push(...tableFigures(model, { name: "throughput", title: several ? "Throughput: goodput of all flows, Mbit/s" : "Throughput: goodput, Mbit/s", metric: throughput, of: flow, note: noteOf(model, throughput), layout }, open));
  }
  if (has("stability") && !askedFor("stability", flow, shownAxes)) {
    const whose = several && flow !== undefined ? ` of ${flow}` : "";
    out.push(...tableFigures(model, { name: "stability", title: `Stability${whose}`, metric: "stability", of: flow, note: noteOf(model, "stability"), layout }, open));
  }
  if (pair) {
    const rest = model.axes.filter((a) => a !== pair.first && a !== pair.second);
    const square: Layout = { row: pair.first, columns: [pair.second], facets: rest };
    const both = [pair.first, pair.second];
    if (has("jain") && !askedFor("jain", undefined, both)) out.push(...tableFigures(model, { name: "fairness", title: "Fairness (Jain)", metric: "jain", note: noteOf(model, "jain"), layout: square }, open));
    if (has("asymmetry") && !askedFor("asymmetry", undefined, both)) {
      out.push(...tableFigures(model, { name: "asymmetry", title: "Asymmetry", metric: "asymmetry", note: noteOf(model, "asymmetry", pair.first), layout: square }, open));
    }
  }
  for (const name of model.traffic()) {
    const times = "completion_time_s.mean";
    if (model.scopeOf(times, name) !== "traffic" || !model.cases.some((_, c) => model.estimate(c, times, name))) continue;
    const [of, metrics] = [name, [times, "completion_time_s.p95"]];
    for (const metric of metrics) out.push(...tableFigures(model, { name: `${metric}-${of}`, title: `${of}: ${model.title(metric, of).toLowerCase()}, s`, metric, of, layout }, open));
  }
  out.push(...pings(model, undefined).map(whole));
  for (const [i, ask] of model.scenario.figures.entries()) {
    if (ask.figure === "matrix") out.push(...asked(model, ask, i, open));
  }
  out.push(...tableFigures(model, { name: "metric", title: "Any metric", metric: has("rtt_ms.p95") ? "rtt_ms.p95" : throughput, of: flow, layout, choice: true }, open));
  cells.append(...out);
  return [cells];
}

function asked(model: Model, ask: FigureAsk, i: number, open: (caseIndex: number) => void): HTMLElement[] {
  const axis = (key: string | undefined): Axis | undefined => model.axes.find((a) => a.key === key);
  const [x, y] = [axis(ask.x), axis(ask.y)];
  if (!x || !y || ask.metric === undefined) return [];
  const facets = model.axes.filter((a) => a !== x && a !== y);
  const title = ask.title ?? model.heading(ask.metric, ask.flow);
  return tableFigures(model, { name: `matrix-${i + 1}`, title, metric: ask.metric, of: ask.flow, note: noteOf(model, ask.metric, y), layout: { row: y, columns: [x], facets } }, open);
}

