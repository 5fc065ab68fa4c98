// Made from crates/report/src/page/data.rs; a test compares. UPDATE_DOCS=1 writes it anew.

export const VERSION = 4;

/** Everything the page shows. */
export interface Page {
  /** Its description, from the file. */
  about: string;
  /** Version of the program that wrote the page. */
  fullpipe: string;
  /** The table of metrics, as far as it has values here. */
  metrics: Metric[];
  /** One scenario, or those of a study. */
  scenarios: Scenario[];
  /** Name of the scenario or the study. */
  title: string;
  /** `VERSION`. */
  version: number;
}

/** A key of the matrix with its values in the order of the file. */
export interface Axis {
  /** Its values compete: stacks, settings that name one, or cases with a name. True of one axis. */
  competes: boolean;
  /** The flow whose stack or key it sets. */
  flow?: string;
  /** Key in words, `RTT`. */
  heading: string;
  /** Key. */
  key: string;
  /** As much of the key as tells it from the others. */
  label: string;
  /** The values as numbers of one unit; absent where one of them is a word or has another unit. */
  numbers?: number[];
  /** The values are stacks. */
  of_stacks: boolean;
  /** Values stand for themselves, without the heading: stacks, and those of an axis that has a name of its own. */
  plain: boolean;
  /** The same for people: numbers stand apart from their units. */
  texts: string[];
  /** The traffic whose stack or key it sets. */
  traffic?: string;
  /** Unit of `numbers`; `1` for plain numbers. */
  unit?: string;
  /** Values as text. */
  values: string[];
}

/** A case. */
export interface Case {
  /** Index of its value on every axis. */
  at: number[];
  /** Short flows, by class. */
  completions?: Completions[];
  /** Curves of the first seed. */
  curves?: Curves;
  /** Data packets that reached a receiver, all seeds. */
  delivered_packets: number;
  /** Parameters that tell it from the others. */
  label: string;
  /** Seeds it ran with. */
  seeds: number;
  /** Virtual time, seconds. */
  simulated_s: number;
  /** Time at the start that means do not count, seconds. */
  warmup_s?: number;
}

/** Short flows of one class in one case, all seeds. */
export interface Completions {
  /** Flows that finished. */
  finished: number;
  /** Losses of first transmissions in the initial window, if there were any. */
  losses?: Losses;
  /** Name of the class. */
  name: string;
  /** Completion times at equal steps of the distribution, first and last included: base64 of `f32`, seconds. */
  quantiles: string;
  /** Flows that did not. */
  unfinished: number;
}

/** A column of `Curves`. */
export interface Curve {
  /** Flow, link or traffic. */
  of: string;
  /** `low`, `high`, `last` or `mean` of the row. */
  stat: "low" | "high" | "last" | "mean";
  /** Connections added up. */
  streams: number;
  /** `cwnd`, `ssthresh`, `rtt`, `goodput`, `queue`, `ping`, `rate`. */
  what: "cwnd" | "ssthresh" | "rtt" | "goodput" | "queue" | "ping" | "rate";
}

/** Curves over time on one grid: row `i` stands for `[i, i + 1) * step`. */
export interface Curves {
  /** Columns one after the other: `f32`, bytes of one significance together, deflated, base64. */
  data: string;
  /** Index into `ScenarioPart::layouts`. */
  layout: number;
  /** Rows. */
  rows: number;
  /** Width of a row, seconds. */
  step: number;
}

/** A metric over the rows of a table; columns are base64 of little-endian `f64`, NaN where undefined. */
export interface EstimateColumn {
  /** Upper ends. */
  high?: string;
  /** Lower ends of the 95 % intervals; absent with one seed. */
  low?: string;
  /** Means over seeds. */
  mean: string;
  /** Metric. */
  metric: string;
}

/** An expectation held against a case. */
export interface Expected {
  /** Accepted values; `null` where open. */
  bound: [number | null, number | null];
  /** Case. */
  case: number;
  /** 95 % interval of the observed value; `null` with one seed. */
  ci95: [number, number] | null;
  /** Metric. */
  metric: string;
  /** Name. */
  name: string;
  /** Observed value. */
  observed: number | null;
  /** Flow or link it is taken from. */
  of: string | null;
  /** False if the bound is missed. */
  pass: boolean;
  /** Document or reason of the bound, as the file says it. */
  source: string;
  /** An end of the bound lies in the interval: neither shown nor contradicted. */
  unclear: boolean;
}

/** In which wrong worlds the expectations fail. */
export interface Falsified {
  /** In the order of the file. */
  expectations: Teeth[];
  /** Each expectation was followed only up to the first world in which it fails. */
  first_failure: boolean;
  /** Worlds of the file, then those made by the program. */
  worlds: World[];
}

/** A `[[report]]` of the file. */
export interface FigureAsk {
  /** Kind. */
  figure: string;
  /** Flow, if not all. */
  flow?: string;
  /** Metric. */
  metric?: string;
  /** Heading. */
  title?: string;
  /** Matrix key. */
  x?: string;
  /** Matrix key or metric. */
  y?: string;
}

/** How losses inside the first segments of a transfer depend on one another. */
export interface Losses {
  /** Part of transfers that lost segment `i`, by `i`. */
  each: (number | null)[];
  /** Part of transfers that lost segment `i + 1` among those that lost segment `i`. */
  next: (number | null)[];
  /** Transfers long enough to have segment `i`. */
  transfers: number[];
}

/** A metric's entry of the table. */
export interface Metric {
  /** Meaning, one line. */
  about: string;
  /** `higher`, `lower` or `neither`. */
  better: "higher" | "lower" | "neither";
  /** A number of things. */
  count: boolean;
  /** Definition in words and symbols. */
  formula: string;
  /** In words, with the unit where they do not say what is counted. */
  heading: string;
  /** Name in `result.json`. */
  name: string;
  /** `flow`, `link`, `traffic` or `case`. */
  scope: "flow" | "link" | "traffic" | "case";
  /** Of the first flow against the second: another sign when they change places. */
  signed: boolean;
  /** Document that defines it. */
  source: string;
  /** In words, without the unit; an expression as the scenario has it. */
  title: string;
  /** Unit; `1` for a ratio. */
  unit: string;
}

/** A competitor in the ranking. */
export interface Rank {
  /** Index into the values of the axis that competes. */
  at: number;
  /** Means of `Ranking::beside` over the same cases; `null` where a case has none. */
  beside: (number | null)[];
  /** Cases in which it has a value, of `Ranking::of_cases`. */
  cases: number;
  /** Half the 95 % interval of that mean, from the means of the seeds; `null` where fewer than two seeds have a value in all of them. */
  half: number | null;
  /** Smallest of the cases. */
  least: number | null;
  /** Mean over the cases; `null` without a rank. */
  mean: number | null;
  /** Largest of the cases. */
  most: number | null;
}

/** The competitors in order, over cases that all of them have. */
export interface Ranking {
  /** Metrics beside it. */
  beside: string[];
  /** `lower`: the smallest mean is first. */
  better: "higher" | "lower";
  /** Cases that the means are over: all that are ranked have a value there. In a matrix of pairs a case counts for either side. */
  cases: number;
  /** Metric that orders them. */
  metric: string;
  /** Of which flow or traffic; absent: of the one that competes. */
  of?: string;
  /** Cases of a competitor. */
  of_cases: number;
  /** The best first, those without a rank last. */
  rows: Rank[];
}

/** A scenario's result. */
export interface Scenario {
  /** Its description, from the file. */
  about: string;
  /** Matrix keys that vary. */
  axes: Axis[];
  /** The cases, in the order of the result. */
  cases: Case[];
  /** Fingerprint of the engine's sources. */
  engine: string;
  /** Bounds and what was observed. */
  expectations: Expected[];
  /** In which wrong worlds they fail, if somebody has looked. */
  falsification?: Falsified;
  /** How true path and hosts of a real run were, the worst of all cases. */
  fidelity?: string;
  /** Figures asked for in the file. */
  figures: FigureAsk[];
  /** Matrix keys that do not, with their value. */
  fixed: [string, string][];
  /** Version of the program that ran it. */
  fullpipe: string;
  /** Ground. */
  ground: string;
  /** Lists of columns that `Curves::layout` points into. */
  layouts: Curve[][];
  /** Machine, in words. */
  machine: string;
  /** Name. */
  name: string;
  /** Path of the file, name of the built-in scenario, or `standard input`. */
  origin: string;
  /** The competitors in order; absent where nothing competes, or nobody says which value of the figure's expression is the better one. */
  ranking?: Ranking;
  /** Seeds of every case. */
  seeds: number[];
  /** Metrics that stand side by side where the cases have one axis or none, as far as there are values. */
  side_by_side: string[];
  /** Values, one table per scope. */
  tables: Table[];
  /** The file. */
  text: string;
  /** SHA-256 of the file. */
  text_sha256: string;
  /** What is to be said where means are less sure than was asked for. */
  unsure?: string;
  /** What is to be said where a real path or its hosts were not what they claim. */
  untrue?: string;
  /** What the means leave out at the start of the runs. */
  warmup?: string;
}

/** Estimates of one scope: one row per case and name. */
export interface Table {
  /** Case of every row. */
  case: number[];
  /** Columns. */
  columns: EstimateColumn[];
  /** Stack of a flow, kind of a traffic; empty otherwise. */
  kind: string[];
  /** Name of flow, link or traffic; empty for the case. */
  name: string[];
  /** `flow`, `link`, `traffic` or `case`. */
  scope: "flow" | "link" | "traffic" | "case";
}

/** An expectation among the worlds. */
export interface Teeth {
  /** Worlds in which it fails, by number. */
  caught: number[];
  /** Why the file says that this is right. */
  excuse?: string;
  /** Line in the file. */
  line: number;
  /** Worlds in which its value is another one and it passes, by number. */
  missed: number[];
  /** Name of the expectation. */
  name: string;
  /** Fails in no world. */
  toothless: boolean;
  /** Fails in generated worlds of one kind only, or only where its metric is undefined. */
  weak: boolean;
}

/** A world that differs from the scenario. */
export interface World {
  /** Description: the change that makes it wrong. */
  about: string;
  /** Expectations that fail in it. */
  caught_by: number;
  /** `caught`, `missed`, `dead`, `inert` (dead, as the file says) or `untried`. */
  effect: "caught" | "missed" | "dead" | "inert" | "untried";
  /** Line of its `[[negative]]`; absent: made by the program. */
  line?: number;
  /** Keys that differ, as `key=value`. */
  set: string[];
}
