// A small page by hand: two stacks, two windows, two distances; one case missing.

import { deflateSync } from "fflate";
import type { Case, Curve, Page, Scenario, Table } from "../../src/generated/data.ts";

export function f64(values: readonly number[]): string {
  return Buffer.from(new Uint8Array(Float64Array.from(values).buffer)).toString("base64");
}

export function f32(values: readonly number[]): string {
  return Buffer.from(new Uint8Array(Float32Array.from(values).buffer)).toString("base64");
}

/** As the program packs curves: bytes of one significance together, deflated. */
export function packed(columns: readonly (readonly number[])[]): string {
  const words = new Uint8Array(Float32Array.from(columns.flat()).buffer);
  const n = words.length / 4;
  const planes = Uint8Array.from({ length: words.length }, (_, i) => words[4 * (i % n) + Math.floor(i / n)]!);
  return Buffer.from(deflateSync(planes)).toString("base64");
}

export const STACKS = ["reno", "cubic"];
export const WINDOWS = ["64 segments", "800 segments"];
export const RTTS = ["10ms", "70ms"];

export function scenario(): Scenario {
  const cases: Case[] = [];
  for (const [s] of STACKS.entries()) for (const [w] of WINDOWS.entries()) for (const [r] of RTTS.entries()) if (!(s === 1 && w === 1 && r === 1)) cases.push({ label: "", at: [s, w, r], simulated_s: 10, delivered_packets: 100, seeds: 2 });
  const layout: Curve[] = [
    { what: "cwnd", of: "main", stat: "low", streams: 1 },
    { what: "cwnd", of: "main", stat: "high", streams: 1 },
    { what: "ssthresh", of: "main", stat: "last", streams: 1 },
    { what: "queue", of: "bottleneck", stat: "low", streams: 1 },
    { what: "queue", of: "bottleneck", stat: "high", streams: 1 },
  ];
  cases[0]!.curves = { step: 2.5, rows: 4, layout: 0, data: packed([[1, 2, 3, 4], [1, 5, 3, 6], [NaN, NaN, 8, 8], [0, 0, 0, 0], [0, 1, 2, 3]]) };
  const mean = cases.map((c) => 10 * c.at[0]! + c.at[1]! + 0.1 * c.at[2]! + 1);
  const flow: Table = {
    scope: "flow",
    case: cases.map((_, i) => i),
    name: cases.map(() => "main"),
    kind: cases.map((c) => STACKS[c.at[0]!]!),
    columns: [{ metric: "goodput_mbps", mean: f64(mean), low: f64(mean.map((v) => v - 0.5)), high: f64(mean.map((v) => v + 0.5)) }],
  };
  return {
    name: "example", about: "", origin: "example.toml", text: "", text_sha256: "", ground: "sim", fullpipe: "1", engine: "", machine: "", seeds: [1, 2],
    axes: [
      { key: "flow.main.stack", label: "stack", heading: "stack", values: STACKS, texts: STACKS, of_stacks: true, plain: true, competes: true, flow: "main" },
      { key: "flow.main.window", label: "window", heading: "window", values: WINDOWS, texts: WINDOWS, of_stacks: false, plain: false, numbers: [64, 800], unit: "segments", competes: false, flow: "main" },
      { key: "path.rtt", label: "rtt", heading: "RTT", values: RTTS, texts: ["10 ms", "70 ms"], of_stacks: false, plain: false, numbers: [0.01, 0.07], unit: "s", competes: false },
    ],
    fixed: [], cases, tables: [flow], side_by_side: ["goodput_mbps"],
    ranking: {
      metric: "goodput_mbps", better: "higher", cases: 3, of_cases: 4, beside: ["stability"],
      rows: [
        { at: 1, cases: 3, mean: 11.5, half: 0.1, least: 11, most: 12, beside: [null] },
        { at: 0, cases: 4, mean: 1.4, half: 0.5, least: 1, most: 2, beside: [0.1] },
      ],
    },
    expectations: [], figures: [{ figure: "metric", x: "flow.main.window", y: "goodput_mbps" }], layouts: [layout],
  };
}

export function page(): Page {
  const metric = { name: "goodput_mbps", title: "Goodput", heading: "Goodput, Mbit/s", scope: "flow" as const, unit: "Mbit/s", count: false, signed: false, better: "higher" as const, about: "", formula: "", source: "" };
  return { version: 4, title: "example", about: "", fullpipe: "1", metrics: [metric], scenarios: [scenario()] };
}
