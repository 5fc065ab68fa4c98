// Colours: ramps that grow darker (on paper) or brighter (on a dark screen) with the value, legible
// text on every one.
//
// One hue for amounts and blue to orange for signed values: both stay readable for people who do
// not see red and green apart, and in grey. Ramps are interpolated in OKLab (Ottosson 2020), in
// which equal steps look equal.

export type Theme = "light" | "dark";
export type Rgb = [number, number, number];

export function parseHex(hex: string): Rgb {
  const n = Number.parseInt(hex.slice(1), 16);
  return [(n >> 16) & 255, (n >> 8) & 255, n & 255];
}

export function hex([r, g, b]: Rgb): string {
  return "#" + [r, g, b].map((c) => Math.round(Math.max(0, Math.min(255, c))).toString(16).padStart(2, "0")).join("");
}

const toLinear = (c: number): number => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const fromLinear = (c: number): number => (c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055);

/** Relative luminance, WCAG 2.2. */
export function luminance(colour: string): number {
  const [r, g, b] = parseHex(colour).map((c) => toLinear(c / 255)) as Rgb;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Contrast ratio, WCAG 2.2: 1 to 21. */
export function contrast(a: string, b: string): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

/** Black or white, whichever reads better; never below 4.5. */
export function textOn(background: string): string {
  return contrast(background, "#000000") >= contrast(background, "#ffffff") ? "#000000" : "#ffffff";
}

function toOklab(colour: string): Rgb {
  const [r, g, b] = parseHex(colour).map((c) => toLinear(c / 255)) as Rgb;
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function fromOklab([L, a, b]: Rgb): string {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return hex(
    [
      4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ].map((c) => 255 * fromLinear(Math.max(0, Math.min(1, c)))) as Rgb,
  );
}

export function mix(from: string, to: string, t: number): string {
  const [a, b] = [toOklab(from), toOklab(to)];
  return fromOklab(a.map((v, i) => v + (b[i]! - v) * t) as Rgb);
}

const RAMPS: Record<Theme, { none: string; most: string; low: string; middle: string; high: string }> = {
  light: { none: "#f1f6fb", most: "#0a4a8f", low: "#1b65ad", middle: "#f7f7f5", high: "#b4540a" },
  dark: { none: "#17222e", most: "#8cc4ff", low: "#62aef5", middle: "#1d242c", high: "#f0954a" },
};

/** An amount, 0 to 1. */
export function sequential(t: number, theme: Theme): string {
  const ramp = RAMPS[theme];
  return mix(ramp.none, ramp.most, Math.max(0, Math.min(1, t)));
}

/** A signed value, -1 to 1; zero is the middle. */
export function diverging(t: number, theme: Theme): string {
  const ramp = RAMPS[theme];
  const clamped = Math.max(-1, Math.min(1, t));
  return mix(ramp.middle, clamped < 0 ? ramp.low : ramp.high, Math.abs(clamped));
}

/** The page's colours. Figures name them as `var(--name)`, so that one figure serves both themes and the exports. */
export const THEMES: Record<Theme, Record<string, string>> = {
  light: {
    bg: "#ffffff",
    panel: "#f5f7f9",
    ink: "#1a2027",
    muted: "#55606c",
    rule: "#d5dbe1",
    grid: "#e6eaee",
    accent: "#0a5aa8",
    good: "#1b6b36",
    bad: "#b3261e",
    s0: "#0066a8",
    s1: "#c94f00",
    s2: "#007a5c",
    s3: "#a3418a",
    s4: "#7d6400",
    s5: "#2f8bc4",
    s6: "#5a6470",
    s7: "#c02d4c",
  },
  dark: {
    bg: "#0f141a",
    panel: "#171d25",
    ink: "#e7ecf2",
    muted: "#a3aeba",
    rule: "#313a45",
    grid: "#232b34",
    accent: "#7cbcff",
    good: "#62cf85",
    bad: "#ff8f85",
    s0: "#5db4f5",
    s1: "#ff9351",
    s2: "#43cfa3",
    s3: "#e591cb",
    s4: "#dcc04c",
    s5: "#a9c9ff",
    s6: "#b8c1cc",
    s7: "#ff8fa3",
  },
};

export const SERIES_COLOURS = 8;

/** Colour of the `i`-th of several curves. */
export function seriesColour(i: number): string {
  return `var(--s${i % SERIES_COLOURS})`;
}

/** Dash of the `i`-th: together with the colour it tells curves apart in grey as well. */
export function seriesDash(i: number): number[] {
  const dashes = [[], [7, 3], [2, 2.5], [8, 3, 2, 3], [4, 2]];
  return dashes[Math.floor(i / SERIES_COLOURS + (i % dashes.length)) % dashes.length] ?? [];
}

const ROUNDS = [[], [2, 3], [10, 3, 2, 3], [14, 4], [6, 2, 2, 2, 2, 2], [4, 1.5]];

/** Dash of the `i`-th of several curves that share a colour: the first is solid. */
export function sharedDash(i: number): number[] {
  return ROUNDS[i % ROUNDS.length] ?? [];
}

/** Replaces `var(--name)` by the theme's colour. */
export function resolve(text: string, theme: Theme): string {
  return text.replace(/var\(--([a-z0-9]+)\)/g, (whole, name: string) => THEMES[theme][name] ?? whole);
}
