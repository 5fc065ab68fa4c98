// What a reader wants first: who came out ahead, with the spread, and what was expected.

import { range } from "../charts/range.ts";
import type { Cell } from "../csv.ts";
import type { Axis, Expected } from "../generated/data.ts";
import { el, scroller, unseen } from "../dom.ts";
import { figure } from "../figure.ts";
import { counted, meanWords, metricHead, number, unit } from "../format.ts";
import { axisLabel, axisWords, half, type Model } from "../model.ts";
import { line, mark, rect, svg, text, textWidth, toDom, type Mark } from "../svg.ts";
import { linear } from "../scale.ts";

/** One competitor over the cases in which it takes part. */
export interface Rank {
  name: string;
  cells: number;
  mean: number;
  /** Half width of the 95 % interval of that mean; NaN with one seed. */
  half: number;
  /** Smallest and largest of the cells. */
  least: number;
  most: number;
  others: (number | undefined)[];
}

export interface Ranking {
  metric: string;
  unit: string;
  count: boolean;
  head: string;
  better: "higher" | "lower";
  /** Fewest and most of a case. */
  seeds: [number, number];
  others: { metric: string; head: string; count: boolean }[];
  rows: Rank[];
}

const BESIDE = ["asymmetry", "utilization", "stability", "rtt_ms.p95", "loss_events"];

/** The competitors, best first; undefined if nothing competes. */
export function ranking(model: Model): Ranking | undefined {
  const axis = model.competitors();
  if (!axis || axis.values.length < 2) return undefined;
  const pair = model.pair();
  const flows = model.flows();
  const own = model.flowOf(axis);
  const judged = judgedBy(model, axis, own);
  if (judged === undefined) return undefined;
  const { metric, of: fixed } = judged;
  const entry = model.metric(metric, fixed);
  const others = BESIDE.filter((m) => m !== metric && model.has(m) && (m !== "asymmetry" || pair !== undefined));
  const rows = axis.values.map((name, at): Rank => {
    // In a matrix of pairs a competitor stands on either side.
    const places = model.select(new Map([[axis, at]])).map((c) => ({ c, of: fixed ?? own ?? flows[0], sign: 1 }));
    if (pair && axis === pair.first) {
      const other = pair.second.values.indexOf(name);
      places.push(...model.select(new Map([[pair.second, other]])).map((c) => ({ c, of: flows[1], sign: -1 })));
    }
    const over = (m: string): { mean: number; half: number }[] =>
      places.flatMap(({ c, of, sign }) => {
        const e = model.estimate(c, m, of);
        return e ? [{ mean: e.mean * (m === "asymmetry" ? sign : 1), half: half(e) }] : [];
      });
    const cells = over(metric);
    const mean = average(cells.map((e) => e.mean));
    const squares = cells.reduce((sum, e) => sum + e.half * e.half, 0);
    return {
      name: axisLabel({ ...axis, key: "" }, name),
      cells: cells.length,
      mean,
      half: Math.sqrt(squares) / cells.length,
      least: Math.min(...cells.map((e) => e.mean)),
      most: Math.max(...cells.map((e) => e.mean)),
      others: others.map((m) => {
        const values = over(m);
        return values.length === 0 ? undefined : average(values.map((e) => e.mean));
      }),
    };
  });
  // Of several flows that share a path the metric is one flow's, which its heading names.
  const whose = fixed ?? own ?? flows[0];
  const headOf = (m: string, of = model.metric(m)): string => {
    const head = metricHead(m, of?.unit ?? "");
    const ofFlow = pair === undefined && flows.length > 1 && model.scopeOf(m, whose) === "flow";
    return ofFlow && whose !== undefined ? `${whose}: ${head}` : head;
  };
  const better = entry?.better === "lower" ? "lower" : "higher";
  const ranked = rows.filter((r) => r.cells > 0).sort((a, b) => (better === "higher" ? b.mean - a.mean : a.mean - b.mean));
  if (ranked.length === 0) return undefined;
  return {
    metric,
    unit: unit(entry?.unit ?? ""),
    count: entry?.count ?? false,
    head: headOf(metric, entry),
    better,
    seeds: model.seeds(),
    others: others.map((m) => ({ metric: m, head: headOf(m), count: model.metric(m)?.count ?? false })),
    rows: ranked,
  };
}

/** What the ranking is by: a time that a figure asks for, completion times where short flows compete, goodput otherwise. */
function judgedBy(model: Model, axis: Axis, own: string | undefined): { metric: string; of?: string } | undefined {
  const asked = model.scenario.figures.find((f) => f.figure === "metric" && f.y !== undefined && /_time_s/.test(f.y) && model.has(f.y));
  if (asked?.y !== undefined) return { metric: asked.y, ...(asked.flow !== undefined ? { of: asked.flow } : {}) };
  const times = "completion_time_s.mean";
  const classes = model.traffic().filter((t) => model.scopeOf(times, t) === "traffic" && model.cases.some((_, c) => model.estimate(c, times, t)));
  const mice = classes.find((c) => c === axis.traffic) ?? (own === undefined ? classes[0] : undefined);
  if (mice !== undefined) return { metric: times, of: mice };
  // Where only one flow competes it is judged by its own goodput, otherwise by what all flows get
  // together.
  const alone = model.flows().length === 1 || model.pair() !== undefined || own !== undefined;
  return (alone ? ["goodput_mbps", "aggregate_goodput_mbps"] : ["aggregate_goodput_mbps"]).map((metric) => ({ metric })).find(({ metric }) => model.has(metric));
}

function average(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0) / values.length;
}

/** `182.3`, `± 0.4`; or `1 seed`: a figure of merit has its spread where there is one. */
export function withSpread(mean: number, halfWidthOf: number, seeds: [number, number], count = false): [string, string] {
  const [value, spread] = meanWords(mean, halfWidthOf, count);
  return [value, Number.isFinite(halfWidthOf) ? spread : seedsText(seeds)];
}

function seedsText([fewest, most]: [number, number]): string {
  return fewest === most ? counted(most, "seed") : `${fewest} to ${counted(most, "seed")}`;
}

const BAR = { width: 200, height: 20 };

function bar(r: Rank, top: number, low: number): Mark {
  const x = linear([Math.min(0, low), top], [2, BAR.width - 2]);
  const middle = BAR.height / 2;
  const marks = [rect(x(0), 4, x(r.mean) - x(0), BAR.height - 8, "var(--s0)", { "fill-opacity": 0.85, rx: 1.5 })];
  if (r.cells > 1) marks.push(line(x(r.least), middle, x(r.most), middle, "var(--ink)", 1), line(x(r.least), 6, x(r.least), 14, "var(--ink)"), line(x(r.most), 6, x(r.most), 14, "var(--ink)"));
  else if (Number.isFinite(r.half)) marks.push(line(x(r.mean - r.half), middle, x(r.mean + r.half), middle, "var(--ink)", 1.5));
  return svg(BAR.width, BAR.height, `${r.name}: ${number(r.mean)}`, marks);
}

export function rankingFigure(model: Model): HTMLElement | undefined {
  const ranked = ranking(model);
  const axis = model.competitors();
  if (!ranked || !axis) return undefined;
  const several = ranked.rows.some((r) => r.cells > 1);
  const paired = model.pair()?.first === axis;
  const top = Math.max(...ranked.rows.map((r) => Math.max(r.most, r.mean + (Number.isFinite(r.half) ? r.half : 0))));
  const body = (): HTMLElement =>
    scroller(
      `Ranking by ${ranked.head}`,
      el(
        "table",
        { class: "ranking" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", { scope: "col", class: "number" }, "#"),
            el("th", { scope: "col" }, axis.key.endsWith(".stack") || paired ? "stack" : axisWords(axis)),
            el("th", { scope: "col", class: "number" }, ranked.head),
            el("th", { scope: "col", class: "nowrap" }, several ? "± 95 %" : "spread"),
            el("th", { scope: "col" }, unseen("bar")),
            several && el("th", { scope: "col", class: "number" }, "smallest – largest"),
            ...ranked.others.map((o) => el("th", { scope: "col", class: "number" }, o.head)),
          ),
        ),
        el(
          "tbody",
          {},
          ...ranked.rows.map((r, i) => {
            const [value, spread] = withSpread(r.mean, r.half, ranked.seeds, ranked.count && r.cells === 1);
            return el(
              "tr",
              {},
              el("td", { class: "number muted" }, String(i + 1)),
              el("th", { scope: "row" }, r.name),
              el("td", { class: "number strong", "data-value": r.mean }, value),
              el("td", { class: "muted nowrap" }, spread),
              el("td", { class: "bar" }, toDom(bar(r, top, 0))),
              several && el("td", { class: "number nowrap" }, r.cells > 1 ? `${number(r.least, 3)} – ${number(r.most, 3)}` : ""),
              ...r.others.map((v, o) => el("td", { class: "number" }, number(v, ranked.others[o]!.count ? 3 : 3))),
            );
          }),
        ),
      ),
    );
  const cells = ranked.rows[0]?.cells ?? 1;
  const note = [
    `${ranked.better === "higher" ? "Most" : "Least"} first.`,
    several ? (paired ? `Means over ${counted(cells, "place")} each, as first and as second of every pair; the thin line spans them.` : `Means over ${counted(cells, "case")} each; the thin line spans the cases.`) : "",
    ranked.seeds[1] > 1 ? `± is half of the 95 % interval over ${seedsText(ranked.seeds)}; without it: the same with every seed, or to a millionth.` : "One seed: there is no interval.",
  ];
  return figure({
    name: `${model.id}-ranking`,
    title: `Ranking by ${ranked.head}`,
    note: note.filter((n) => n !== "").join(" "),
    body,
    height: 60 + 28 * ranked.rows.length,
    svg: () => rankingDrawing(ranked, top),
    csv: (): Cell[][] => [
      ["rank", axis.key, "cases", `${ranked.metric} mean`, "ci95_half", "smallest", "largest", ...ranked.others.map((o) => o.metric)],
      ...ranked.rows.map((r, i) => [i + 1, r.name, r.cells, r.mean, r.half, r.least, r.most, ...r.others]),
    ],
  }).element;
}

function rankingDrawing(ranked: Ranking, top: number): Mark {
  const left = Math.max(...ranked.rows.map((r) => textWidth(r.name, 12))) + 28;
  const marks: Mark[] = [text(12, 22, `Ranking by ${ranked.head}`, { size: 14, weight: 600 })];
  ranked.rows.forEach((r, i) => {
    const y = 40 + 26 * i;
    const [value, spread] = withSpread(r.mean, r.half, ranked.seeds);
    marks.push(text(12, y + 14, r.name), mark("g", { transform: `translate(${left} ${y})` }, ...bar(r, top, 0).children.slice(1) as Mark[]));
    marks.push(text(left + BAR.width + 80, y + 14, value, { anchor: "end", weight: 600 }), text(left + BAR.width + 88, y + 14, spread, { fill: "var(--muted)" }));
  });
  return svg(left + BAR.width + 180, 52 + 26 * ranked.rows.length, `Ranking by ${ranked.head}`, marks);
}

/** Failing ones first, then unclear ones, else in the order of the file. */
export function sorted(expectations: readonly Expected[]): Expected[] {
  const all = [...expectations];
  const rank = (e: Expected): number => (e.pass ? (e.unclear ? 1 : 2) : 0);
  return all.sort((a, b) => rank(a) - rank(b));
}

/** How an expectation came out: class, words, colour. */
function verdict(e: Expected): [string, string, string] {
  if (!e.pass) return ["fail", "✗ fails", "var(--bad)"];
  return e.unclear ? ["unclear", "? unclear", "var(--muted)"] : ["pass", "✓ holds", "var(--good)"];
}

/** `all 9 hold`, `2 of 9 fail, 1 unclear`. */
export function outcome(all: readonly Expected[], one: (n: number) => string = String): string {
  const failed = all.filter((e) => !e.pass).length;
  const unclear = all.filter((e) => e.unclear).length;
  const besides = unclear === 0 ? "" : `, ${unclear} unclear`;
  if (failed > 0) return `${failed} of ${one(all.length)} fail${besides}`;
  return unclear === 0 ? `all ${one(all.length)} hold` : `${all.length - unclear} of ${one(all.length)} hold${besides}`;
}

/** `at least 0.85`, `8 to 11`, `0.33 exactly`. */
export function boundText([low, high]: Expected["bound"]): string {
  if (low === null && high === null) return "no difference beyond chance";
  if (low === null) return `at most ${number(high)}`;
  if (high === null) return `at least ${number(low)}`;
  return low === high ? `exactly ${number(low, 7)}` : number(low) === number(high) ? `${number(low, 7)} to ${number(high, 7)}` : `${number(low)} to ${number(high)}`;
}

/** Passing expectations that are shown without being asked for. */
const SHOWN = 12;

export function expectationsFigure(model: Model, open: (caseIndex: number) => void): HTMLElement | undefined {
  const all = sorted(model.scenario.expectations);
  if (all.length === 0) return undefined;
  const needed = all.filter((e) => !e.pass || e.unclear).length;
  const title = `Expectations: ${outcome(all)}`;
  const part = (some: readonly Expected[]): HTMLElement =>
    el(
      "table",
      { class: "expectations" },
      el("thead", {}, el("tr", {}, ...[unseen("verdict"), "expectation", "case", "observed", "accepted", unseen("bar"), "source"].map((h, i) => el("th", { scope: "col", class: i === 3 ? "number" : undefined }, h)))),
      el("tbody", {}, ...some.map((e) => row(model, e, open))),
    );
  const first = all.slice(0, Math.max(SHOWN, needed));
  const rest = all.slice(first.length);
  const body = (): HTMLElement =>
    scroller(
      title,
      part(first),
      rest.length > 0 && el("details", {}, el("summary", {}, `${counted(rest.length, "more expectation")} that hold`), part(rest)),
    );
  return figure({
    name: `${model.id}-expectations`,
    title,
    note: "The band is what is accepted; the dot is what was observed, a diamond if it fails; the line through it is its 95 % interval, and if that reaches across an end of the band it is unclear: neither shown nor contradicted.",
    body,
    height: 50 + 34 * first.length,
    svg: () => expectationsDrawing(model, all, title),
    csv: (): Cell[][] => [
      ["expectation", "case", "metric", "of", "observed", "ci95_low", "ci95_high", "accepted_low", "accepted_high", "pass", "unclear", "source"],
      ...all.map((e): Cell[] => [e.name, model.caseLabel(e.case), e.metric, e.of, e.observed, e.ci95?.[0], e.ci95?.[1], e.bound[0], e.bound[1], String(e.pass), String(e.unclear), e.source]),
    ],
  }).element;
}

function row(model: Model, e: Expected, open: (caseIndex: number) => void): HTMLElement {
  const u = unit(model.metric(e.metric, e.of ?? undefined)?.unit ?? "");
  const [observed, spread] = meanWords(e.observed, e.ci95 ? (e.ci95[1] - e.ci95[0]) / 2 : NaN);
  const label = model.caseLabel(e.case);
  const words = `observed ${observed} ${u}, accepted ${boundText(e.bound)}`;
  return el(
    "tr",
    { class: verdict(e)[0] },
    el("td", { class: "verdict" }, verdict(e)[1]),
    el("th", { scope: "row" }, e.name, e.of !== null && e.name.indexOf(e.of) < 0 && el("span", { class: "muted" }, ` (${e.of})`)),
    el("td", {}, label === "" ? "" : el("button", { type: "button", class: "link", title: "Show its time series", onclick: () => open(e.case) }, label)),
    el("td", { class: "number nowrap", "data-value": e.observed ?? "" }, el("span", { class: "strong" }, observed), spread !== "" && el("span", { class: "muted" }, ` ${spread}`), u !== "" && el("span", { class: "muted" }, ` ${u}`)),
    el("td", { class: "nowrap" }, boundText(e.bound)),
    el("td", { class: "bar" }, toDom(range(e, words))),
    el("td", { class: "source" }, e.source),
  );
}

function expectationsDrawing(model: Model, all: readonly Expected[], title: string): Mark {
  const name = (e: Expected): string => [e.name, model.caseLabel(e.case)].filter((t) => t !== "").join(" · ");
  const left = Math.max(...all.map((e) => textWidth(name(e), 11))) + 84;
  const marks: Mark[] = [text(12, 22, title, { size: 14, weight: 600 })];
  all.forEach((e, i) => {
    const y = 38 + 26 * i;
    const [, words, fill] = verdict(e);
    marks.push(text(12, y + 15, words, { size: 11, fill, weight: 600 }));
    marks.push(text(72, y + 15, name(e), { size: 11 }));
    marks.push(mark("g", { transform: `translate(${left} ${y})` }, ...range(e, "").children.slice(1) as Mark[]));
    marks.push(text(left + 196, y + 15, `${number(e.observed)}; accepted ${boundText(e.bound)}`, { size: 11, fill: "var(--muted)" }));
  });
  return svg(left + 196 + 260, 50 + 26 * all.length, title, marks);
}
