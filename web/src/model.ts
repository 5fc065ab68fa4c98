// The result as the figures ask for it: estimates by case and name, axes by their role, the
// competitors.

import type { Axis, Case, FigureAsk, Metric, Page, Scenario, Table } from "./generated/data.ts";
import { float64s } from "./decode.ts";

/** What a metric is taken of. */
export type Scope = Table["scope"];

export interface Estimate {
  mean: number;
  low: number;
  high: number;
}

/** Half width of the 95 % interval; NaN without one. */
export function half(e: Estimate): number {
  return (e.high - e.low) / 2;
}

interface Column {
  mean: Float64Array;
  low: Float64Array | undefined;
  high: Float64Array | undefined;
}

/** A scope's table, decoded when it is asked for. */
export class Values {
  readonly table: Table;
  private readonly columns = new Map<string, Column>();
  private readonly rows = new Map<string, number>();

  constructor(table: Table) {
    this.table = table;
    table.case.forEach((c, row) => this.rows.set(`${c} ${table.name[row]}`, row));
  }

  metrics(): string[] {
    return this.table.columns.map((c) => c.metric);
  }

  names(): string[] {
    return [...new Set(this.table.name)];
  }

  private column(metric: string): Column | undefined {
    const known = this.columns.get(metric);
    if (known) return known;
    const raw = this.table.columns.find((c) => c.metric === metric);
    if (!raw) return undefined;
    const column: Column = {
      mean: float64s(raw.mean),
      low: raw.low === undefined ? undefined : float64s(raw.low),
      high: raw.high === undefined ? undefined : float64s(raw.high),
    };
    this.columns.set(metric, column);
    return column;
  }

  at(caseIndex: number, name: string, metric: string): Estimate | undefined {
    const row = this.rows.get(`${caseIndex} ${name}`);
    const column = this.column(metric);
    if (row === undefined || !column) return undefined;
    const mean = column.mean[row] ?? NaN;
    if (Number.isNaN(mean)) return undefined;
    return { mean, low: column.low?.[row] ?? NaN, high: column.high?.[row] ?? NaN };
  }

  kind(caseIndex: number, name: string): string | undefined {
    const row = this.rows.get(`${caseIndex} ${name}`);
    return row === undefined ? undefined : this.table.kind[row];
  }
}

/** A scenario with its values and the roles of its axes. */
export class Model {
  readonly page: Page;
  readonly scenario: Scenario;
  readonly id: string;
  private readonly scopes: Map<Scope, Values>;
  private readonly places = new Map<string, { scope: Scope; name: string } | null>();

  constructor(page: Page, scenario: Scenario, id: string) {
    this.page = page;
    this.scenario = scenario;
    this.id = id;
    this.scopes = new Map(scenario.tables.map((t) => [t.scope, new Values(t)]));
  }

  get cases(): Case[] {
    return this.scenario.cases;
  }

  get axes(): Axis[] {
    return this.scenario.axes;
  }

  values(scope: Scope): Values | undefined {
    return this.scopes.get(scope);
  }

  /** Names of the flows. */
  flows(): string[] {
    return this.values("flow")?.names() ?? [];
  }

  /** The entry of a metric, as `of` (a flow, a link, traffic) has it. */
  metric(name: string, of?: string): Metric | undefined {
    const scope = this.place(name, of)?.scope;
    return this.page.metrics.find((m) => m.name === name && m.scope === scope);
  }

  has(metric: string, of?: string): boolean {
    return this.place(metric, of) !== undefined;
  }

  scopeOf(metric: string, of?: string): Scope | undefined {
    return this.place(metric, of)?.scope;
  }

  /** Where a metric is found: at `of` if that has it, otherwise at the first that does. */
  private place(metric: string, of?: string): { scope: Scope; name: string } | undefined {
    const key = `${metric} ${of ?? ""}`;
    const known = this.places.get(key);
    if (known !== undefined) return known ?? undefined;
    const having = SCOPES.flatMap((scope) => {
      const values = this.values(scope);
      return values && values.metrics().includes(metric) ? values.names().map((name) => ({ scope, name })) : [];
    });
    const found = having.find((p) => p.name === of) ?? having[0];
    this.places.set(key, found ?? null);
    return found;
  }

  /** A metric of a case; of a flow, a link or traffic when `of` names one that has it. */
  estimate(caseIndex: number, metric: string, of?: string): Estimate | undefined {
    const place = this.place(metric, of);
    return place && this.values(place.scope)?.at(caseIndex, place.name, metric);
  }

  /** Index of a case's value on an axis. */
  at(caseIndex: number, axis: Axis): number {
    return this.cases[caseIndex]?.at[this.axes.indexOf(axis)] ?? 0;
  }

  /** Value of an axis in a case, for people. */
  value(caseIndex: number, axis: Axis): string {
    return axis.texts[this.at(caseIndex, axis)] ?? "";
  }

  /** A metric in words; one without an entry by its name. */
  title(metric: string, of?: string): string {
    return this.metric(metric, of)?.title ?? metric;
  }

  /** A metric in words, with its unit. */
  heading(metric: string, of?: string): string {
    return this.metric(metric, of)?.heading ?? metric;
  }

  /** Cases with these positions, by axis; every case if none is given. */
  select(where: ReadonlyMap<Axis, number>): number[] {
    const fixed = [...where].map(([axis, at]) => [this.axes.indexOf(axis), at] as const);
    return this.cases.flatMap((c, i) => (fixed.every(([axis, at]) => c.at[axis] === at) ? [i] : []));
  }

  /** The two axes that hold every competitor against every other, if that is what the scenario does. */
  pair(): { first: Axis; second: Axis } | undefined {
    if (this.flows().length < 2) return undefined;
    for (const [i, first] of this.axes.entries()) {
      const second = this.axes.slice(i + 1).find((b) => sameValues(first, b));
      if (second) return { first, second };
    }
    return undefined;
  }

  /** The axis whose values compete. */
  competitors(): Axis | undefined {
    return this.axes.find((a) => a.competes);
  }

  /** The flow whose keys an axis sets. */
  flowOf(axis: Axis): string | undefined {
    return axis.flow !== undefined && this.flows().includes(axis.flow) ? axis.flow : undefined;
  }

  /** What tells a case from the others: `reno, RTT 70 ms`, `reno vs cubic, RTT 10 ms`. */
  caseLabel(caseIndex: number): string {
    const pair = this.pair();
    const rest = this.axes.filter((a) => a !== pair?.first && a !== pair?.second);
    const words = rest.map((a) => axisLabel(a, this.at(caseIndex, a)));
    if (pair) words.unshift(`${this.value(caseIndex, pair.first)} vs ${this.value(caseIndex, pair.second)}`);
    return words.join(", ");
  }

  /** Names of short flows, datagrams and probes. */
  traffic(): string[] {
    return this.values("traffic")?.names() ?? [];
  }

  /** Links of which a metric is known. */
  links(metric: string): string[] {
    const names = this.values("link")?.names() ?? [];
    return names.filter((of) => this.cases.some((_, c) => (this.estimate(c, metric, of)?.mean ?? null) !== null));
  }

  /** What the scenario's file asks of figures that are drawn anyway: of one with nothing asked, if it
   * does not name any. */
  asked(figure: string): FigureAsk[] {
    const asks = this.scenario.figures.filter((f) => f.figure === figure);
    return asks.length === 0 ? [{ figure }] : asks;
  }

  severalSeeds(): boolean {
    return this.cases.some((c) => c.seeds > 1);
  }

  /** `3 seeds`, or `3 to 12 seeds` where a precision was asked for. */
  seeds(): [number, number] {
    const n = this.cases.map((c) => c.seeds);
    return [Math.min(...n), Math.max(...n)];
  }
}

const SCOPES: Scope[] = ["flow", "case", "link", "traffic"];

function sameValues(a: Axis, b: Axis): boolean {
  return a.values.length > 1 && a.values.length === b.values.length && a.values.every((v) => b.values.includes(v));
}

/** Every combination of the values of some axes that occurs, in the order of the cases. */
export function combinations(model: Model, axes: readonly Axis[]): { at: Map<Axis, number>; label: string }[] {
  const seen = new Map<string, { at: Map<Axis, number>; label: string }>();
  for (const c of model.cases) {
    const at = new Map(axes.map((a) => [a, c.at[model.axes.indexOf(a)] ?? 0]));
    const key = [...at.values()].join(" ");
    if (!seen.has(key)) {
      const label = axes.map((a) => axisLabel(a, at.get(a) ?? 0)).join(", ");
      seen.set(key, { at, label });
    }
  }
  const order = [...seen.values()];
  return order.sort((a, b) => compare([...a.at.values()], [...b.at.values()]));
}

/** `RTT 70 ms`; stacks and named values stand for themselves. */
export function axisLabel(axis: Axis, at: number): string {
  const words = axis.texts[at] ?? "";
  return axis.plain ? words : `${axis.heading} ${words}`;
}

function compare(a: number[], b: number[]): number {
  for (const [i, v] of a.entries()) {
    const d = v - (b[i] ?? 0);
    if (d !== 0) return d;
  }
  return 0;
}
