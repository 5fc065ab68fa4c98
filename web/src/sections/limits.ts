// Is it the host or the network? What held each flow back, from the metrics `limited.*`.

import type { Cell } from "../csv.ts";
import { el, scroller, unseen } from "../dom.ts";
import { figure } from "../figure.ts";
import { counted, metricNumber, number } from "../format.ts";
import type { Model } from "../model.ts";
import { rect, svg, text, textWidth, toDom, type Mark } from "../svg.ts";

/** The metrics in the order of the bars, what they are called, and whose matter they are. */
const LIMITS = [
  { metric: "limited.network", word: "network", whose: "the network" },
  { metric: "limited.local_queue", word: "local queue", whose: "the sender's host" },
  { metric: "limited.receive_window", word: "receive window", whose: "the receiver" },
  { metric: "limited.application", word: "application", whose: "the application" },
  { metric: "limited.window_cap", word: "window cap", whose: "the flow's own settings" },
  { metric: "limited.rate", word: "rate", whose: "the flow's own settings" },
  { metric: "limited.pacing", word: "pacing", whose: "the sender's pacing" },
] as const;

/** One flow in one case. */
export interface Limited {
  case: number;
  label: string;
  flow: string;
  goodput: number | undefined;
  /** Parts of the time, in the order of the limits. */
  parts: number[];
  /** Index of the largest part. */
  longest: number;
  stalls: number | undefined;
}

/** Every flow with the times of its limits, in the order of the cases. */
export function limitedFlows(model: Model): Limited[] {
  return model.cases.flatMap((_, c) =>
    model.flows().flatMap((flow): Limited[] => {
      const parts = LIMITS.map((l) => model.estimate(c, l.metric, flow)?.mean ?? NaN);
      if (!parts.some((p) => p > 0)) return [];
      const sizes = parts.map((p) => (Number.isNaN(p) ? 0 : p));
      return [
        {
          case: c,
          label: model.caseLabel(c),
          flow,
          goodput: model.estimate(c, "goodput_mbps", flow)?.mean,
          parts: sizes,
          longest: sizes.indexOf(Math.max(...sizes)),
          stalls: model.estimate(c, "local_stalls", flow)?.mean,
        },
      ];
    }),
  );
}

/** `The network held back 3 of 5 flows for most of the time, the sender's host 2.` */
export function answer(flows: readonly Limited[]): string {
  const counts = new Map<string, number>();
  for (const f of flows) counts.set(LIMITS[f.longest]!.whose, (counts.get(LIMITS[f.longest]!.whose) ?? 0) + 1);
  const [first, ...rest] = [...counts].sort((a, b) => b[1] - a[1]);
  if (!first) return "";
  const capital = first[0].charAt(0).toUpperCase() + first[0].slice(1);
  const all = flows.length === 1 ? "the flow" : rest.length === 0 ? (flows.length === 2 ? "both flows" : `all ${flows.length} flows`) : `${first[1]} of ${flows.length} flows`;
  const others = rest.map(([whose, n]) => `, ${whose} ${n}`).join("");
  return `${capital} held back ${all} for most of the time${others}.`;
}

const BAR = { width: 260, height: 18 };

function bar(f: Limited): Mark {
  let x = 0;
  const marks = f.parts.flatMap((part, i): Mark[] => {
    const width = part * BAR.width;
    x += width;
    return width < 0.5 ? [] : [rect(x - width, 2, width, BAR.height - 4, `var(--s${i})`)];
  });
  const words = f.parts.flatMap((part, i) => (part > 0.0005 ? [`${LIMITS[i]!.word} ${percent(part)}`] : []));
  return svg(BAR.width, BAR.height, words.join(", "), marks);
}

function percent(part: number): string {
  return `${number(100 * part, part >= 0.0995 ? 3 : 2)} %`;
}

/** Rows that are shown without being asked for. */
const SHOWN = 40;

export function limitsFigure(model: Model): HTMLElement | undefined {
  const flows = limitedFlows(model);
  if (flows.length === 0) return undefined;
  const stalls = flows.some((f) => (f.stalls ?? 0) > 0);
  const used = LIMITS.flatMap((_, i) => (flows.some((f) => f.parts[i]! > 0.0005) ? [i] : []));
  const named = model.flows().length > 1;
  const cased = flows.some((f) => f.label !== "");
  const title = "Host or network: what held each flow back";
  const head = (label: string | HTMLElement, numeric: boolean): HTMLElement => el("th", { scope: "col", class: numeric ? "number" : undefined }, label);
  const part = (some: readonly Limited[]): HTMLElement =>
    el(
      "table",
      { class: "limits" },
      el("thead", {}, el("tr", {}, cased && head("case", false), named && head("flow", false), head("Goodput, Mbit/s", true), head("limited by", false), head(unseen("parts of the time"), false), ...used.map((i) => head(LIMITS[i]!.word, true)), stalls && head("stalls", true))),
      el(
        "tbody",
        {},
        ...some.map((f) =>
          el(
            "tr",
            {},
            cased && el("td", {}, f.label),
            named && el("td", {}, f.flow),
            el("td", { class: "number" }, number(f.goodput)),
            el("th", { scope: "row" }, LIMITS[f.longest]!.word),
            el("td", { class: "bar" }, toDom(bar(f))),
            ...used.map((i) => el("td", { class: "number" }, percent(f.parts[i]!))),
            stalls && el("td", { class: "number" }, metricNumber(f.stalls, true)),
          ),
        ),
      ),
    );
  const key = (): HTMLElement => el("p", { class: "note" }, ...used.flatMap((i) => [toDom(svg(12, 12, LIMITS[i]!.word, [rect(0, 1, 10, 10, `var(--s${i})`)])), ` ${LIMITS[i]!.word} `]));
  const rest = flows.slice(SHOWN);
  const body = (): HTMLElement => scroller(title, key(), part(flows.slice(0, SHOWN)), rest.length > 0 && el("details", {}, el("summary", {}, `${counted(rest.length, "more flow")}`), part(rest)));
  return figure({
    name: `${model.id}-limits`,
    title,
    note: `${answer(flows)} Parts of the measured time in which the sender had to wait for its congestion window (network), for its own host's queue, for the receiver's window, for data, or for a ceiling of its own. Stalls are segments that the host's interface refused.`,
    height: 60 + 26 * Math.min(flows.length, SHOWN),
    body,
    svg: () => drawing(flows, title, used, named),
    csv: (): Cell[][] => [
      ["case", "flow", "goodput_mbps", "limited_by", ...LIMITS.map((l) => l.metric), "local_stalls"],
      ...flows.map((f): Cell[] => [f.label, f.flow, f.goodput, LIMITS[f.longest]!.word, ...f.parts, f.stalls]),
    ],
  }).element;
}

export function drawing(flows: readonly Limited[], title: string, used: readonly number[], named: boolean): Mark {
  const name = (f: Limited): string => [f.label, named ? f.flow : ""].filter((t) => t !== "").join(" · ");
  const left = Math.max(0, ...flows.map((f) => textWidth(name(f), 12))) + 28;
  const marks: Mark[] = [text(12, 22, title, { size: 14, weight: 600 })];
  let x = 12;
  for (const i of used) {
    marks.push(rect(x, 34, 10, 10, `var(--s${i})`), text(x + 14, 43, LIMITS[i]!.word, { size: 11 }));
    x += 30 + textWidth(LIMITS[i]!.word, 11);
  }
  flows.forEach((f, row) => {
    const y = 54 + 22 * row;
    marks.push(text(12, y + 13, name(f)));
    let at = left;
    f.parts.forEach((part, i) => {
      marks.push(rect(at, y + 2, part * BAR.width, 14, `var(--s${i})`));
      at += part * BAR.width;
    });
    marks.push(text(left + BAR.width + 10, y + 13, LIMITS[f.longest]!.word, { fill: "var(--muted)" }));
  });
  return svg(Math.max(left + BAR.width + 120, x), 66 + 22 * flows.length, title, marks);
}
