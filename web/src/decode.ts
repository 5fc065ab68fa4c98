// Columns out of their text.

import { inflateSync } from "fflate";
import type { Curves } from "./generated/data.ts";

export function bytes(base64: string): Uint8Array {
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

export function float64s(base64: string): Float64Array {
  const raw = bytes(base64);
  const view = new DataView(raw.buffer);
  return Float64Array.from({ length: raw.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
}

export function float32s(base64: string): Float32Array {
  const raw = bytes(base64);
  const view = new DataView(raw.buffer);
  return Float32Array.from({ length: raw.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

/** The columns of a case's curves. */
export function curveColumns(curves: Curves): Float32Array[] {
  const planes = inflateSync(bytes(curves.data));
  const n = planes.length / 4;
  const words = new Uint8Array(planes.length);
  for (let plane = 0; plane < 4; plane++) {
    for (let i = 0; i < n; i++) words[4 * i + plane] = planes[plane * n + i] ?? 0;
  }
  const view = new DataView(words.buffer);
  const all = Float32Array.from({ length: n }, (_, i) => view.getFloat32(4 * i, true));
  const columns: Float32Array[] = [];
  for (let from = 0; from < n; from += curves.rows) columns.push(all.subarray(from, from + curves.rows));
  return columns;
}
