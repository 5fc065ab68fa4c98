import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { contrast, diverging, luminance, resolve, sequential, textOn, THEMES, type Theme } from "../../src/colour.ts";

const BOTH: Theme[] = ["light", "dark"];
const steps = Array.from({ length: 101 }, (_, i) => i / 100);

test("contrast of the standard's examples", () => {
  assert.equal(contrast("#000000", "#ffffff"), 21);
  assert.ok(Math.abs(contrast("#777777", "#ffffff") - 4.48) < 0.01);
});

test("amounts grow darker on paper and brighter on a dark screen, without a step back", () => {
  for (const theme of BOTH) {
    const sign = theme === "light" ? -1 : 1;
    const l = steps.map((t) => luminance(sequential(t, theme)));
    for (let i = 1; i < l.length; i++) assert.ok(sign * (l[i]! - l[i - 1]!) > 0, `${theme} ${i}`);
  }
});

test("signed values leave the middle evenly, and the two sides are told apart", () => {
  for (const theme of BOTH) {
    const sign = theme === "light" ? -1 : 1;
    for (const side of [-1, 1]) {
      const l = steps.map((t) => luminance(diverging(side * t, theme)));
      for (let i = 1; i < l.length; i++) assert.ok(sign * (l[i]! - l[i - 1]!) > 0, `${theme} ${side} ${i}`);
    }
    assert.equal(diverging(0, theme), diverging(-0, theme));
    // Blue against orange: also for eyes that do not see red and green apart.
    const blue = Number.parseInt(diverging(-1, theme).slice(5), 16) - Number.parseInt(diverging(-1, theme).slice(1, 3), 16);
    const orange = Number.parseInt(diverging(1, theme).slice(5), 16) - Number.parseInt(diverging(1, theme).slice(1, 3), 16);
    assert.ok(blue > 90 && orange < -90, `${theme}: ${blue} ${orange}`);
  }
});

test("text reads on every colour of a cell", () => {
  for (const theme of BOTH) {
    for (const t of steps) {
      for (const fill of [sequential(t, theme), diverging(t, theme), diverging(-t, theme)]) {
        assert.ok(contrast(fill, textOn(fill)) >= 4.5, `${theme} ${t} ${fill}`);
      }
    }
  }
});

test("words read on the page, curves are seen on it", () => {
  for (const theme of BOTH) {
    const c = THEMES[theme];
    for (const word of ["ink", "muted", "accent", "good", "bad"]) {
      for (const paper of ["bg", "panel"]) assert.ok(contrast(c[word]!, c[paper]!) >= 4.5, `${theme} ${word} on ${paper}`);
    }
    for (let i = 0; i < 8; i++) assert.ok(contrast(c[`s${i}`]!, c["bg"]!) >= 3, `${theme} s${i}`);
  }
});

test("the style sheet has the same colours", () => {
  const css = readFileSync("src/style.css", "utf8");
  const block = (head: string): string => css.slice(css.indexOf(head), css.indexOf("}", css.indexOf(head)));
  const blocks: [Theme, string][] = [["light", block(":root {")], ["dark", block(':root[data-theme="dark"] {')], ["light", block(':root, :root[data-theme="dark"] {')]];
  for (const [theme, text] of blocks) {
    for (const [name, value] of Object.entries(THEMES[theme])) assert.ok(text.includes(`--${name}: ${value};`), `${theme} ${name}`);
  }
});

test("names of colours become colours", () => {
  assert.equal(resolve("fill:var(--ink);stroke:var(--none)", "light"), "fill:#1a2027;stroke:var(--none)");
});
