// Numbers and names as people read them.

/** `digits` significant digits, without an exponent between 1e-4 and 1e7; thousands apart by a thin space. */
export function number(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e9) return value.toExponential(digits - 1).replace("-", "−").replace("e+", "e");
  const rounded = Number(value.toPrecision(digits));
  const whole = Math.floor(Math.log10(Math.abs(rounded))) + 1;
  const decimals = Math.max(0, digits - whole);
  return grouped(size >= 10 ** digits ? value.toFixed(0) : rounded.toFixed(decimals));
}

/** Like `number`, but a count has no decimals unless it is a mean that needs them. */
export function metricNumber(value: number | null | undefined, count: boolean, digits = 4): string {
  if (count && typeof value === "number" && Number.isInteger(value)) return grouped(String(value));
  return number(value, digits);
}

/** A mean and the half width of its interval: two digits of the interval, the mean down to the same place. Undefined where the interval is so narrow that it says nothing. The rule of the program's tables, crates/report/src/digits.rs; one list of examples tests both. */
export function withInterval(mean: number, half: number): [string, string] | undefined {
  if (!(half > NARROW * Math.abs(mean)) || !Number.isFinite(half)) return undefined;
  // Rounded first: 0.0996 is 0.10, whose last digit is the second decimal.
  const rounded = half.toExponential(1);
  const exponent = Number(rounded.split("e")[1]);
  if (Math.max(Math.abs(mean), Number(rounded)) < SMALL) {
    const first = mean === 0 ? exponent : Math.floor(Math.log10(Math.abs(mean)));
    return [mean.toExponential(Math.max(0, first + 1 - exponent)).replace("e+", "e"), rounded];
  }
  const decimals = Math.max(0, 1 - exponent);
  const text = mean.toFixed(decimals);
  // What is rounded to zero has no sign.
  return [/[1-9]/.test(text) ? text : text.replace("-", ""), Number(rounded).toFixed(decimals)];
}

/** Part of its mean from which on an interval is printed. */
const NARROW = 1e-6;
/** Smaller numbers are printed with an exponent. */
const SMALL = 1e-6;

/** `85.2`, `± 1.3`; the second is empty where there is no interval, or one that says nothing. */
export function meanWords(mean: number | null, half: number, count = false, digits = 4): [string, string] {
  const both = mean === null ? undefined : withInterval(mean, half);
  return both ? [grouped(both[0]), `± ${grouped(both[1])}`] : [metricNumber(mean, count, digits), ""];
}

function grouped(text: string): string {
  const [whole = "", fraction] = text.replace(/^-/, "").replace("e-", "e−").split(".");
  const head = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") : whole;
  const sign = text.startsWith("-") ? "−" : "";
  return sign + (fraction === undefined ? head : `${head}.${fraction}`);
}

/** Parts of prose, in turn plain and, between backticks, code. */
export function spans(prose: string): { text: string; code: boolean }[] {
  return prose.split("`").map((text, i) => ({ text, code: i % 2 === 1 })).filter((part) => part.text !== "");
}

/** `Mbit/s`; nothing for a ratio. */
export function unit(of: string): string {
  return of === "1" ? "" : of;
}

/** `1 seed`, `3 seeds`. */
export function counted(n: number, what: string): string {
  return `${grouped(String(n))} ${what}${n === 1 ? "" : "s"}`;
}

/** A name for files: letters, digits and dashes. */
export function slug(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9.]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60) || "figure";
}
