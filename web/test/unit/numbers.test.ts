import assert from "node:assert/strict";
import { test } from "node:test";

import examples from "../../../crates/report/src/digits.json";
import { csv } from "../../src/csv.ts";
import { meanWords, metricNumber, number, slug, spans, withInterval } from "../../src/format.ts";
import { linear, logTicks, niceDomain, tickText, ticks } from "../../src/scale.ts";
import { parseCsv } from "../csv.ts";

test("numbers keep their digits", () => {
  assert.equal(number(191.1468), "191.1");
  assert.equal(number(0.0227), "0.02270");
  assert.equal(number(9.9996), "10.00");
  assert.equal(number(0), "0");
  assert.equal(number(-0.8823529), "−0.8824");
  assert.equal(number(123456.7), "123\u202f457");
  assert.equal(number(7434), "7434");
  assert.equal(number(null), "–");
  assert.equal(number(NaN), "–");
  assert.equal(number(Infinity), "∞");
  assert.equal(number(1.5e-6), "1.500e−6");
  assert.equal(metricNumber(36, true), "36");
  assert.equal(metricNumber(36.5, true), "36.50");
});

test("a mean stops where its interval begins, as in the program's tables", () => {
  for (const [mean, half, ...texts] of examples) assert.deepEqual(withInterval(mean as number, half as number) ?? [], texts, `${mean} ${half}`);
  assert.deepEqual(meanWords(199.6523, 0.288), ["199.65", "± 0.29"]);
  assert.deepEqual(meanWords(199.9, 0), ["199.9", ""]);
  assert.deepEqual(meanWords(5.657e-5, 1.2e-6), ["0.0000566", "± 0.0000012"]);
  assert.deepEqual(meanWords(-2.5132e-9, 9.9e-10), ["−2.51e−9", "± 9.9e−10"]);
  assert.deepEqual(meanWords(36, NaN, true), ["36", ""]);
});

test("a name for files", () => {
  assert.equal(slug("A <b> & c/../d"), "a-b-c-..-d");
});

test("CSV comes back", () => {
  const text = csv([
    ["a", 'with "quotes"', "and, commas", "line\nbreak"],
    [1.0000000001, null, NaN, -3e-9],
  ]);
  assert.deepEqual(parseCsv(text), [
    ["a", 'with "quotes"', "and, commas", "line\nbreak"],
    ["1.0000000001", "", "", "-3e-9"],
  ]);
});

test("scales and ticks", () => {
  assert.equal(linear([0, 10], [0, 100])(2.5), 25);
  assert.deepEqual(ticks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(ticks(0, 120, 4), [0, 50, 100]);
  assert.deepEqual(niceDomain(0, 1230, 4), [0, 1500]);
  assert.deepEqual(niceDomain(5, 5, 4), [0, 5]);
  assert.deepEqual(logTicks(0.01, 100, 9), [0.01, 0.1, 1, 10, 100]);
  assert.equal(tickText(0.25, 0.05), "0.25");
  assert.equal(tickText(25000, 5000), "25k");
  assert.equal(tickText(-0.5, 0.5), "−0.5");
});

test("prose has code between backticks", () => {
  assert.deepEqual(spans("set `a = 1` in [[flow]]"), [{ text: "set ", code: false }, { text: "a = 1", code: true }, { text: " in [[flow]]", code: false }]);
  assert.deepEqual(spans("plain"), [{ text: "plain", code: false }]);
});
