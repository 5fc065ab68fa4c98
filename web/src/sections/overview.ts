// What a reader wants first: who came out ahead, with the spread, and what was expected.

import { range } from "../charts/range.ts";
import type { Cell } from "../csv.ts";
import type { Expected, Rank, Ranking } from "../generated/data.ts";
import { el, scroller, unseen } from "../dom.ts";
import { figure } from "../figure.ts";
import { counted, meanWords, number, unit } from "../format.ts";
import type { Model } from "../model.ts";
import { line, mark, rect, svg, text, textWidth, toDom, type Mark } from "../svg.ts";
import { linear } from "../scale.ts";

/** The ranking with what its table is headed by; undefined if nothing competes. */
export interface Headed extends Ranking {
  head: string;
  count: boolean;
  /** Fewest and most of a case. */
  seeds: [number, number];
  others: { metric: string; head: string; count: boolean }[];
  names: string[];
}

export function ranking(model: Model): Headed | undefined {
  const axis = model.competitors();
  const ranked = model.scenario.ranking;
  if (!axis || !ranked) return undefined;
  const pair = model.pair();
  const flows = model.flows();
  // Of several flows that share a path the metric is one flow's, which its heading names.
  const whose = ranked.of ?? model.flowOf(axis) ?? flows[0];
  const headOf = (m: string, of = model.metric(m)): string => {
    const head = of?.heading ?? m;
    const ofFlow = pair === undefined && flows.length > 1 && model.scopeOf(m, whose) === "flow";
    return ofFlow && whose !== undefined ? `${whose}: ${head}` : head;
  };
  const entry = model.metric(ranked.metric, ranked.of);
  return {
    ...ranked,
    head: headOf(ranked.metric, entry),
    count: entry?.count ?? false,
    seeds: model.seeds(),
    others: ranked.beside.map((m) => ({ metric: m, head: headOf(m), count: model.metric(m)?.count ?? false })),
    names: ranked.rows.map((r) => axis.texts[r.at] ?? ""),
  };
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

/** The mean from zero; a thin line over the cases, of one case over its interval. */
function bar(r: Rank, label: string, several: boolean, top: number): Mark {
  const x = linear([0, top], [2, BAR.width - 2]);
  const middle = BAR.height / 2;
  const { mean, half, least, most } = r;
  if (mean === null || least === null || most === null) return svg(BAR.width, BAR.height, `${label}: no value`, []);
  const marks = [rect(x(0), 4, x(mean) - x(0), BAR.height - 8, "var(--s0)", { "fill-opacity": 0.85, rx: 1.5 })];
  if (several) marks.push(line(x(least), middle, x(most), middle, "var(--ink)", 1), line(x(least), 6, x(least), 14, "var(--ink)"), line(x(most), 6, x(most), 14, "var(--ink)"));
  else if (half !== null) marks.push(line(x(mean - half), middle, x(mean + half), middle, "var(--ink)", 1.5));
  return svg(BAR.width, BAR.height, `${label}: ${number(mean)}`, marks);
}

/** Value and spread; of one without a rank, where it has values. */
export function words(r: Rank, ranked: Headed): [string, string] {
  if (r.mean !== null) return withSpread(r.mean, r.half ?? NaN, ranked.seeds, ranked.count && ranked.cases === 1);
  return ["–", r.cases === 0 ? "no value" : `a value in ${r.cases} of ${ranked.of_cases}`];
}

export function rankingFigure(model: Model): HTMLElement | undefined {
  const ranked = ranking(model);
  const axis = model.competitors();
  if (!ranked || !axis) return undefined;
  const several = ranked.cases > 1;
  const paired = model.pair()?.first === axis;
  const top = Math.max(...ranked.rows.map((r) => Math.max(r.most ?? 0, (r.mean ?? 0) + (r.half ?? 0))));
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
            el("th", { scope: "col" }, axis.of_stacks || paired ? "stack" : axis.heading),
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
            const [value, spread] = words(r, ranked);
            const name = ranked.names[i]!;
            return el(
              "tr",
              {},
              el("td", { class: "number muted" }, r.mean === null ? "–" : String(i + 1)),
              el("th", { scope: "row" }, name),
              el("td", { class: "number strong", "data-value": r.mean ?? "" }, value),
              el("td", { class: "muted nowrap" }, spread),
              el("td", { class: "bar" }, toDom(bar(r, name, several, top))),
              several && el("td", { class: "number nowrap" }, r.least === null ? "" : `${number(r.least, 3)} – ${number(r.most, 3)}`),
              ...r.beside.map((v) => el("td", { class: "number" }, number(v, 3))),
            );
          }),
        ),
      ),
    );
  return figure({
    name: `${model.id}-ranking`,
    title: `Ranking by ${ranked.head}`,
    note: notes(ranked, paired).join(" "),
    body,
    height: 60 + 28 * ranked.rows.length,
    svg: () => rankingDrawing(ranked, top),
    csv: (): Cell[][] => [
      ["rank", axis.key, "cases", `${ranked.metric} mean`, "ci95_half", "smallest", "largest", ...ranked.others.map((o) => o.metric)],
      ...ranked.rows.map((r, i) => [r.mean === null ? null : i + 1, ranked.names[i]!, r.cases, r.mean, r.half, r.least, r.most, ...r.beside]),
    ],
  }).element;
}

/** What the means are over, and who is left out. */
export function notes(ranked: Headed, paired: boolean): string[] {
  const all = [`${ranked.better === "higher" ? "Most" : "Least"} first.`];
  const one = paired ? "place" : "case";
  const over =
    ranked.cases === ranked.of_cases
      ? `${counted(ranked.cases, one)} each${paired ? ", as first and as second of every pair" : ""}`
      : `${ranked.cases} of ${counted(ranked.of_cases, one)}, where every ranked one has a value`;
  if (ranked.of_cases > 1) all.push(`Means over ${over}${ranked.cases > 1 ? "; the thin line spans them" : ""}.`);
  if (ranked.rows.some((r) => r.mean === null)) all.push(`Without a rank: too few ${one}s with a value, or none in common with the others.`);
  all.push(ranked.seeds[1] > 1 ? `± is half of the 95 % interval over ${seedsText(ranked.seeds)}; without it: the same with every seed to a millionth, or too few seeds with a value.` : "One seed: there is no interval.");
  return all;
}

function rankingDrawing(ranked: Headed, top: number): Mark {
  const left = Math.max(...ranked.names.map((name) => textWidth(name, 12))) + 28;
  const marks: Mark[] = [text(12, 22, `Ranking by ${ranked.head}`, { size: 14, weight: 600 })];
  ranked.rows.forEach((r, i) => {
    const y = 40 + 26 * i;
    const [value, spread] = words(r, ranked);
    const name = ranked.names[i]!;
    marks.push(text(12, y + 14, name), mark("g", { transform: `translate(${left} ${y})` }, ...bar(r, name, ranked.cases > 1, top).children.slice(1) as Mark[]));
    marks.push(text(left + BAR.width + 80, y + 14, value, { anchor: "end", weight: 600 }), text(left + BAR.width + 88, y + 14, spread, { fill: "var(--muted)" }));
  });
  return svg(left + BAR.width + 240, 52 + 26 * ranked.rows.length, `Ranking by ${ranked.head}`, marks);
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

/** `all 9 hold`, `2 of 9 fail, 1 unclear`; of a single one `1 fails`. */
export function outcome(all: readonly Expected[], one: (n: number) => string = String): string {
  const failed = all.filter((e) => !e.pass).length;
  const unclear = all.filter((e) => e.unclear).length;
  const besides = unclear === 0 ? "" : `, ${unclear} unclear`;
  if (all.length === 1 && unclear === 0) return `${one(1)} ${failed > 0 ? "fails" : "holds"}`;
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
