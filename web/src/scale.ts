// Scales and their ticks.

export interface Scale {
  (value: number): number;
  readonly domain: readonly [number, number];
}

export function linear(domain: readonly [number, number], range: readonly [number, number]): Scale {
  const span = domain[1] - domain[0] || 1;
  const scale = (v: number): number => range[0] + ((v - domain[0]) / span) * (range[1] - range[0]);
  return Object.assign(scale, { domain });
}

export function logarithmic(domain: readonly [number, number], range: readonly [number, number]): Scale {
  const inner = linear([Math.log(domain[0]), Math.log(domain[1])], range);
  return Object.assign((v: number): number => inner(Math.log(v)), { domain });
}

/** 1, 2 or 5 times a power of ten, so that about `count` of them fit. */
export function niceStep(span: number, count: number): number {
  if (!(span > 0)) return 1;
  const raw = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const head = raw / power;
  return power * (head <= 1 ? 1 : head <= 2 ? 2 : head <= 5 ? 5 : 10);
}

export function ticks(low: number, high: number, count: number): number[] {
  const step = niceStep(high - low, count);
  const out: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) out.push(Number((i * step).toPrecision(12)));
  return out;
}

/** Powers of ten, with 2 and 5 between them where there is room. */
export function logTicks(low: number, high: number, count: number): number[] {
  const decades = Math.log10(high / low);
  const heads = decades * 3 <= count ? [1, 2, 5] : [1];
  const out: number[] = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
    for (const head of heads) {
      const v = Number((head * 10 ** e).toPrecision(12));
      if (v >= low * (1 - 1e-9) && v <= high * (1 + 1e-9)) out.push(v);
    }
  }
  return out;
}

/** The domain widened to whole ticks. */
export function niceDomain(low: number, high: number, count: number): [number, number] {
  if (!(high > low)) return low === 0 ? [0, 1] : [Math.min(0, low), Math.max(0, low) || 1];
  const step = niceStep(high - low, count);
  return [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
}

/** A tick's text, with the decimals that its step needs. */
export function tickText(value: number, step: number): string {
  const size = Math.abs(value);
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(6))}M`.replace("-", "−");
  if (size >= 1e4) return `${Number((value / 1e3).toPrecision(6))}k`.replace("-", "−");
  const decimals = Math.max(0, Math.min(8, -Math.floor(Math.log10(step) + 1e-9)));
  return value.toFixed(decimals).replace("-", "−");
}

export function extent(values: Iterable<number>): [number, number] | undefined {
  let low = Infinity;
  let high = -Infinity;
  for (const v of values) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return low <= high ? [low, high] : undefined;
}
