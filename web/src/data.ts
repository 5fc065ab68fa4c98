// What the page is given: the same as crates/report/src/page/data.rs. The two change together,
// with VERSION.

export const VERSION = 1;

export interface Page {
  version: number;
  title: string;
  about: string;
  fullpipe: string;
  metrics: Metric[];
  scenarios: Scenario[];
}

export type Scope = "flow" | "link" | "traffic" | "case";

export interface Metric {
  name: string;
  scope: Scope;
  /** `1` for a ratio. */
  unit: string;
  count: boolean;
  better: "higher" | "lower" | "neither";
  about: string;
  formula: string;
  source: string;
}

export interface Scenario {
  name: string;
  about: string;
  origin: string;
  text: string;
  text_sha256: string;
  ground: string;
  fullpipe: string;
  engine: string;
  machine: string;
  seeds: number[];
  axes: Axis[];
  fixed: [string, string][];
  cases: Case[];
  tables: Table[];
  expectations: Expected[];
  figures: FigureAsk[];
  layouts: Curve[][];
  /** What is to be said where means are less sure than was asked for. */
  unsure?: string;
  /** What is to be said where a real path was not what it claims. */
  untrue?: string;
  /** How true a real path was, the worst of all cases. */
  fidelity?: string;
}

/** A matrix key that varies, with its values in the order of the file. */
export interface Axis {
  key: string;
  label: string;
  values: string[];
  /** What the tables of a named axis set, as dotted keys. */
  sets?: string[];
}

export interface Case {
  label: string;
  /** Index of its value on every axis. */
  at: number[];
  /** Number of seeds it ran with. */
  seeds: number;
  simulated_s: number;
  delivered_packets: number;
  curves?: Curves;
  completions?: Completions[];
}

/** Estimates of one scope: one row per case and name. */
export interface Table {
  scope: Scope;
  case: number[];
  name: string[];
  /** Stack of a flow, kind of a traffic. */
  kind: string[];
  columns: EstimateColumn[];
}

/** Columns are base64 of little-endian float64, NaN where undefined. */
export interface EstimateColumn {
  metric: string;
  mean: string;
  low?: string;
  high?: string;
}

export interface Expected {
  name: string;
  case: number;
  metric: string;
  of: string | null;
  observed: number | null;
  ci95: [number, number] | null;
  /** `null` where open. */
  bound: [number | null, number | null];
  pass: boolean;
  source: string;
}

export interface FigureAsk {
  figure: string;
  flow?: string;
  x?: string;
  y?: string;
  metric?: string;
  title?: string;
}

/** Curves over time on one grid: row `i` stands for `[i, i + 1) * step`. */
export interface Curves {
  /** Seconds. */
  step: number;
  rows: number;
  /** Index into `Scenario.layouts`. */
  layout: number;
  /** Columns one after the other: float32, bytes of one significance together, deflated, base64. */
  data: string;
}

export interface Curve {
  what: "cwnd" | "ssthresh" | "rtt" | "goodput" | "queue" | "ping" | "rate";
  of: string;
  stat: "low" | "high" | "last" | "mean";
  streams: number;
}

/** Short flows of one class in one case, all seeds. */
export interface Completions {
  name: string;
  finished: number;
  unfinished: number;
  /** Completion times at equal steps of the distribution, both ends included: base64 of float32, seconds. */
  quantiles: string;
  losses?: Losses;
}

/** How losses inside the first segments of a transfer depend on one another. */
export interface Losses {
  each: (number | null)[];
  next: (number | null)[];
  transfers: number[];
}
