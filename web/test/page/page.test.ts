import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, test } from "node:test";

import { contrast, luminance } from "../../src/colour.ts";
import { parseCsv } from "../csv.ts";
import { meanWords, number } from "../../src/format.ts";
import { close, file, open, scrollThrough, inBrowser, study } from "./support.ts";

after(close);

/** `s3-throughput`: scenarios of a study are numbered in the order of their names. */
const T = "s3-throughput";
const P = "s2-pairs";
const F = "s4-together";

const W = "s4-together";

const page = (theme: "light" | "dark" = "light", width?: number) => open(join(study().dir, "report.html"), theme, width);

/** Goodput of a case of the result, by its parameters. */
function cases<T>(scenario: string, metric: (c: any) => T): Map<string, T> {
  return new Map(study().result(scenario).cases.map((c: any) => [Object.values(c.params).join(" "), metric(c)]));
}

test("it opens without a network and without an error", inBrowser, async () => {
  const { tab, faults, requests, load } = await page();
  await scrollThrough(tab);
  console.log(`# ${statSync(join(study().dir, "report.html")).size} bytes, first section after ${load.toFixed(0)} ms`);
  assert.deepEqual(faults, []);
  assert.equal(requests.length, 1, requests.join(" "));
  assert.ok(load < 20_000);
  await tab.context().close();
});

test("cells have the numbers of result.json, and colours that grow with them", inBrowser, async () => {
  const { tab } = await page();
  await scrollThrough(tab);
  const wanted = cases("throughput", (c): [number, [number, number]] => [c.flows[0].goodput_mbps, c.flows[0].goodput_mbps_ci95]);
  const read = await tab.locator(`figure[data-name="${T}-throughput"] table`).evaluate((t) => {
    const table = t as HTMLTableElement;
    const heads = [...table.tHead!.rows].map((row) => [...row.querySelectorAll("th:not(.corner)")].flatMap((h) => Array.from({ length: (h as HTMLTableCellElement).colSpan }, () => h.textContent!)));
    return [...table.tBodies[0]!.rows].flatMap((row) =>
      [...row.querySelectorAll("td")].map((td, c) => ({
        key: [row.querySelector("th")!.textContent!, ...heads.map((h) => h[c]!)],
        texts: [td.querySelector(".value")!.textContent!, td.querySelector(".half")?.textContent ?? ""],
        exact: Number(td.dataset["value"]),
        colour: getComputedStyle(td).backgroundColor,
        scope: row.querySelector("th")!.scope,
      })),
    );
  });
  assert.equal(read.length, wanted.size);
  for (const cell of read) {
    // The outer heading is the shorter axis, the RTT.
    const [stack, rtt, window] = cell.key;
    const value = wanted.get(`${stack} ${window} ${rtt!.replace(" ", "")}`);
    assert.ok(value !== undefined, cell.key.join(" "));
    const [mean, [low, high]] = value;
    assert.equal(cell.exact, mean);
    assert.deepEqual(cell.texts, meanWords(mean, (high - low) / 2));
    assert.equal(cell.scope, "row");
  }
  const sorted = [...read].sort((a, b) => a.exact - b.exact);
  const light = sorted.map((c) => luminance(hexOf(c.colour)));
  for (let i = 1; i < light.length; i++) assert.ok(light[i]! <= light[i - 1]! + 1e-6, "darker with the value");
  await tab.context().close();
});

test("asymmetry has its sign's colour, fairness follows from it", inBrowser, async () => {
  const { tab } = await page();
  await scrollThrough(tab);
  const wanted = cases("pairs", (c) => c.metrics.asymmetry);
  for (const [i, rtt] of ["10ms", "70ms"].entries()) {
    const read = await tab.locator(`figure[data-name="${P}-asymmetry-${i + 1}"] table`).evaluate((t) => {
      const table = t as HTMLTableElement;
      const heads = [...table.tHead!.rows[0]!.querySelectorAll("th:not(.corner)")].map((h) => h.textContent!);
      return [...table.tBodies[0]!.rows].flatMap((row) => [...row.querySelectorAll("td")].map((td, c) => ({ pair: `${row.querySelector("th")!.textContent} ${heads[c]}`, exact: Number(td.dataset["value"]), colour: getComputedStyle(td).backgroundColor })));
    });
    assert.equal(read.length, 16);
    for (const cell of read) {
      assert.equal(cell.exact, wanted.get(`${cell.pair} ${rtt}`), cell.pair);
      const [r, , b] = channels(cell.colour);
      if (cell.exact > 0.05) assert.ok(r! > b!, `${cell.pair}: orange`);
      if (cell.exact < -0.05) assert.ok(b! > r!, `${cell.pair}: blue`);
    }
  }
  await tab.context().close();
});

test("what fails is said first, with its numbers", inBrowser, async () => {
  const { tab } = await page();
  await scrollThrough(tab);
  const expected = study().result("throughput").expectations;
  const failed = expected.filter((e: any) => !e.pass);
  const unclear = expected.filter((e: any) => e.pass && e.unclear);
  assert.ok(failed.length > 0 && unclear.length > 0 && failed.length + unclear.length < expected.length, "the fixture has all three");
  const rows = await tab.locator(`figure[data-name="${T}-expectations"] tbody tr`).evaluateAll((all) => all.map((r) => ({ verdict: r.querySelector(".verdict")!.textContent!, observed: r.querySelector("[data-value]")!.getAttribute("data-value")!, text: r.textContent! })));
  assert.equal(rows.length, expected.length);
  const verdicts = [...failed.map(() => "fails"), ...unclear.map(() => "unclear"), ...expected.filter((e: any) => e.pass && !e.unclear).map(() => "holds")];
  rows.forEach((row, i) => assert.ok(row.verdict.includes(verdicts[i]!), `row ${i}: ${row.verdict}`));
  assert.deepEqual(rows.slice(0, failed.length).map((r) => Number(r.observed)), failed.map((e: any) => e.observed));
  assert.ok(rows[0]!.text.includes("at least"));
  const badge = await tab.locator(".badge").textContent();
  assert.ok(badge!.includes(`${failed.length} of`), badge!);
  await tab.context().close();
});

test("the cursor shows the nearest sample, the same in every panel", inBrowser, async () => {
  const { tab } = await page();
  await tab.locator(`#${T}-series`).scrollIntoViewIfNeeded();
  await tab.waitForSelector(`#${T}-series .u-over`);
  const csv = parseCsv((await file(tab, `${T}-series`, "CSV")).toString());
  const head = csv[0]!;
  const over = tab.locator(`#${T}-series [data-panel="cwnd"] .u-over`);
  await over.scrollIntoViewIfNeeded();
  const box = (await over.boundingBox())!;
  await tab.mouse.move(box.x + box.width * 0.62, box.y + box.height / 2);
  const time = 0.62 * 12;
  const column = (name: string): number => head.findIndex((h) => h.startsWith(name));
  const nearest = csv.slice(1).reduce((best, row) => (Math.abs(Number(row[0]) - time) < Math.abs(Number(best[0]) - time) ? row : best));
  const legend = (panel: string) => tab.locator(`#${T}-series [data-panel="${panel}"] .u-series:not(.u-low) .u-value`).allTextContents();
  const [shownTime, window] = await legend("cwnd");
  assert.equal(shownTime, `${number(Number(nearest[0]))} s`);
  const [low, high] = [Number(nearest[column("cwnd_segments main low")]), Number(nearest[column("cwnd_segments main high")])];
  assert.equal(window, number(low) === number(high) ? number(low) : `${number(low)} – ${number(high)}`);
  for (const panel of ["rtt", "queue", "goodput"]) assert.equal((await legend(panel))[0], shownTime, panel);
  await tab.context().close();
});

test("zoom changes the axis of every panel, by mouse and by keys", inBrowser, async () => {
  const { tab } = await page();
  await tab.locator(`#${T}-series`).scrollIntoViewIfNeeded();
  await tab.waitForSelector(`#${T}-series .u-over`);
  const range = () => tab.locator(`#${T}-series output.range`).textContent();
  const whole = await range();
  assert.equal(whole, "0 – 12.00 s");
  const over = tab.locator(`#${T}-series [data-panel="cwnd"] .u-over`);
  await over.scrollIntoViewIfNeeded();
  const box = (await over.boundingBox())!;
  await tab.mouse.move(box.x + box.width * 0.25, box.y + 40);
  await tab.mouse.down();
  await tab.mouse.move(box.x + box.width * 0.5, box.y + 60, { steps: 5 });
  await tab.mouse.up();
  const [from, to] = (await range())!.replace(" s", "").split(" – ").map(Number);
  assert.ok(Math.abs(from! - 3) < 0.1 && Math.abs(to! - 6) < 0.1, `${from} ${to}`);
  // The drawing that is saved shows the same part.
  const svg = (await file(tab, `${T}-series`, "SVG")).toString();
  assert.ok(svg.includes(">3.5<") && !svg.includes(">11<"), "ticks of the zoomed axis");
  await tab.locator(`#${T}-series [data-panel="cwnd"]`).focus();
  await tab.keyboard.press("0");
  assert.equal(await range(), whole);
  await tab.keyboard.press("+");
  assert.equal(await range(), "3.000 – 9.000 s");
  await tab.keyboard.press("ArrowRight");
  const shown = await tab.locator(`#${T}-series [data-panel="queue"] .u-value`).first().textContent();
  assert.match(shown!, /^\d/, "the cursor moved in the other panels too");
  await tab.context().close();
});

test("every figure gives a drawing, a picture and data", inBrowser, async () => {
  const { tab, faults } = await page();
  await scrollThrough(tab);
  const names = await tab.locator("figure").evaluateAll((all) => all.map((f) => (f as HTMLElement).dataset["name"]!));
  assert.ok(names.length >= 12, names.join(" "));
  assert.equal(new Set(names).size, names.length, "one file, one name");
  for (const name of names) {
    const svg = (await file(tab, name, "SVG")).toString();
    const fault = await tab.evaluate((text) => new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror")?.textContent ?? "", svg);
    assert.equal(fault, "", name);
    assert.ok(!/NaN|undefined|var\(--/.test(svg), name);
    const csv = parseCsv((await file(tab, name, "CSV")).toString());
    assert.ok(csv.length > 1 && csv.every((row) => row.length === csv[0]!.length), name);
  }
  const png = await file(tab, `${T}-throughput`, "PNG");
  assert.deepEqual([...png.subarray(1, 4)], [..."PNG"].map((c) => c.charCodeAt(0)));
  assert.ok(png.length > 5000);
  const csv = parseCsv((await file(tab, `${T}-throughput`, "CSV")).toString());
  const wanted = cases("throughput", (c) => c.flows[0].goodput_mbps);
  assert.deepEqual(csv.slice(1).map((r) => Number(r[3])).sort(), [...wanted.values()].sort());
  assert.deepEqual(faults, []);
  await tab.context().close();
});

test("words read in both themes", inBrowser, async () => {
  for (const theme of ["light", "dark"] as const) {
    const { tab } = await page(theme);
    await scrollThrough(tab);
    assert.equal(await tab.evaluate(() => document.documentElement.dataset["theme"]), theme);
    const pairs = await tab.evaluate(() => {
      const solid = (e: Element | null): string => {
        for (; e; e = e.parentElement) {
          const c = getComputedStyle(e).backgroundColor;
          if (!/, 0\)$|transparent/.test(c)) return c;
        }
        return "rgb(255, 255, 255)";
      };
      const out: { words: string; ink: string; paper: string }[] = [];
      const walker = document.createTreeWalker(document.getElementById("app")!, NodeFilter.SHOW_TEXT);
      for (let n = walker.nextNode(); n; n = walker.nextNode()) {
        const e = n.parentElement!;
        const words = n.textContent!.trim();
        if (words === "" || e.closest("title") || e.getClientRects().length === 0) continue;
        const style = getComputedStyle(e);
        out.push({ words, ink: e.namespaceURI!.endsWith("svg") ? style.fill : style.color, paper: solid(e) });
      }
      return out;
    });
    assert.ok(pairs.length > 300);
    for (const p of pairs) assert.ok(contrast(hexOf(p.ink), hexOf(p.paper)) >= 4.5, `${theme}: “${p.words}” ${p.ink} on ${p.paper}`);
    await tab.locator("button.theme").click();
    assert.notEqual(await tab.evaluate(() => document.documentElement.dataset["theme"]), theme);
    await tab.context().close();
  }
});

test("the keyboard alone reaches everything", inBrowser, async () => {
  const { tab } = await page();
  await scrollThrough(tab);
  const reached: string[] = [];
  for (let i = 0; i < 600; i++) {
    await tab.keyboard.press("Tab");
    const at = await tab.evaluate(() => {
      const e = document.activeElement as HTMLElement;
      if (e === document.body) return "";
      const ring = getComputedStyle(e).outlineStyle !== "none" || e.matches("select, input");
      return `${e.tagName} ${e.className} ${e.dataset["panel"] ?? ""} ${e.getAttribute("aria-label") ?? e.textContent!.slice(0, 30)}${ring ? "" : " NO RING"}`;
    });
    if (at === "") break;
    reached.push(at);
  }
  assert.ok(reached[0]!.includes("Skip to the results"));
  assert.deepEqual(reached.filter((r) => r.endsWith("NO RING")), []);
  for (const what of ["BUTTON theme", "BUTTON file", "SELECT", "TD heat", "BUTTON saw", "panel panel-cwnd", "SUMMARY", "INPUT", "Zoom in", "Next case"]) {
    assert.ok(reached.some((r) => r.includes(what)), `${what} among ${reached.length} stops`);
  }
  // One stop per table; arrows move inside.
  const controls = await tab.locator("main button:visible, main select:visible, main input:visible").count();
  assert.ok(reached.length >= controls, `${reached.length} stops, ${controls} controls`);
  const table = tab.locator(`figure[data-name="${T}-throughput"] table`);
  await table.locator("td[tabindex='0']").focus();
  await tab.keyboard.press("ArrowDown");
  await tab.keyboard.press("ArrowRight");
  const place = await tab.evaluate(() => {
    const td = document.activeElement as HTMLTableCellElement;
    return [(td.parentElement as HTMLTableRowElement).sectionRowIndex, td.cellIndex];
  });
  assert.deepEqual(place, [1, 2]);
  const caseIndex = await tab.evaluate(() => Number((document.activeElement as HTMLElement).dataset["case"]));
  await tab.keyboard.press("Enter");
  const params = study().result("throughput").cases[caseIndex].params;
  const name = await tab.locator(`#${T}-series .case-name`).textContent();
  assert.ok(name!.includes(params["flow.main.stack"]) && name!.includes(params["flow.main.window"]), name!);
  await tab.context().close();
});

test("three widths in both themes: nothing is wider than the window, and axe finds nothing", inBrowser, async () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  for (const [width, themes] of [[360, ["light"]], [768, ["dark"]], [1440, ["light", "dark"]]] as const) {
    for (const theme of themes) {
      const { tab } = await page(theme, width);
      await scrollThrough(tab);
      assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width}: the page scrolls sideways`);
      const small = await tab.locator(".figure-body svg:not(td svg):visible").evaluateAll((all) => all.filter((s) => s.getBoundingClientRect().width < 0.99 * Number(s.getAttribute("width"))).map((s) => s.getAttribute("aria-label")));
      assert.deepEqual(small, [], `${width}: words that shrink with their drawing`);
      await tab.evaluate(axe);
      const found = await tab.evaluate(async () => {
        // A small multiple is named by its title; axe takes the numbers of its axes for a part
        // of that.
        const ran = await (globalThis as any).axe.run({ exclude: [".saw"] }, { resultTypes: ["violations"] });
        return ran.violations.map((v: any) => `${v.id}: ${v.nodes.map((n: any) => n.target.join(" ")).join(", ")}`);
      });
      assert.deepEqual(found, [], `${theme}, ${width}`);
      await tab.context().close();
    }
  }
});

test("what goes on beyond an edge throws a shadow there", inBrowser, async () => {
  const { tab } = await page("light", 400);
  await scrollThrough(tab);
  const hidden = await tab.locator(".scroll:visible").evaluateAll((all) => all.filter((e) => e.scrollWidth > e.clientWidth && !/local.*scroll/.test(getComputedStyle(e).backgroundAttachment)).length);
  assert.equal(hidden, 0);
  // The first number of the ranking is seen without scrolling.
  const right = await tab.locator(`figure[data-name="${T}-ranking"] td.strong`).first().evaluate((e) => e.getBoundingClientRect().right);
  assert.ok(right <= 400, `${right}`);
  await tab.context().close();
});

test("titles of small multiples end inside them", inBrowser, async () => {
  const { tab } = await page();
  await scrollThrough(tab);
  const ends = await tab.locator(`#${T}-sawtooth .saw svg`).evaluateAll((all) => all.map((s) => s.querySelector("text")!.getBoundingClientRect().right - s.getBoundingClientRect().right));
  assert.equal(ends.length, 24);
  for (const end of ends) assert.ok(end <= 0, `${end} pixels too far`);
  await tab.context().close();
});

test("one scale is offered where there is one", inBrowser, async () => {
  const { tab } = await page();
  await scrollThrough(tab);
  const box = (name: string) => tab.locator(`figure[data-name="${name}-sawtooth"] label.choice`);
  assert.equal(await box(F).innerText(), "one scale");
  assert.ok(await box(F).locator("input").isChecked());
  assert.match(await box(T).innerText(), /^one scale: not here/);
  assert.ok(await box(T).locator("input").isDisabled());
  assert.ok(!(await box(T).locator("input").isChecked()));
  await tab.context().close();
});

test("the keyboard stays where it works, and goes where a case is opened", inBrowser, async () => {
  const { tab } = await page();
  await tab.locator(`#${T}-series`).scrollIntoViewIfNeeded();
  await tab.waitForSelector(`#${T}-series .u-over`);
  const at = () => tab.evaluate(() => (document.activeElement as HTMLElement).getAttribute("aria-label") ?? (document.activeElement as HTMLElement).dataset["name"]);
  const next = tab.locator(`#${T}-series`).getByRole("button", { name: "Next case" });
  await next.focus();
  await tab.keyboard.press("Enter");
  assert.equal(await at(), "Next case");
  await scrollThrough(tab);
  await tab.locator(`#${T}-sawtooth .saw`).nth(3).focus();
  await tab.keyboard.press("Enter");
  assert.equal(await at(), `${T}-series`);
  await tab.context().close();
});

test("curves are hidden and shown by keys, in the colours of the theme", inBrowser, async () => {
  const { tab } = await page();
  await tab.locator(`#${W}-series`).scrollIntoViewIfNeeded();
  await tab.waitForSelector(`#${W}-series .u-over`);
  const panel = tab.locator(`#${W}-series [data-panel="cwnd"]`);
  const name = panel.getByRole("button", { name: "second: cubic", exact: true });
  const colour = () => panel.locator(".u-marker").nth(1).evaluate((m) => getComputedStyle(m).backgroundColor);
  const light = await colour();
  await tab.locator("button.theme").click();
  assert.notEqual(await colour(), light);
  const off = () => panel.locator(".u-series.u-off").count();
  await name.focus();
  await tab.keyboard.press("Enter");
  assert.equal(await name.getAttribute("aria-pressed"), "false");
  // Both ends of a range, where there are two.
  const ends = await panel.locator(".u-series.u-off").evaluateAll((rows) => rows.map((r) => r.classList.contains("u-low")));
  assert.equal(ends.filter((low) => !low).length, 1);
  assert.equal(ends.length, (await panel.locator(".u-series.u-low").count()) > 0 ? 2 : 1);
  await tab.keyboard.press(" ");
  assert.equal(await name.getAttribute("aria-pressed"), "true");
  assert.equal(await off(), 0);
  await tab.context().close();
});

test("a result that is not valid says so, and leads to the reason", inBrowser, async () => {
  const [dir, html] = [study().dir, readFileSync(join(study().dir, "report.html"), "utf8")];
  const marked = html.replace(/(<script type="application\/json" id="data">)([^]*?)(<\/script>)/, (_, before, data, after) => {
    const whole = JSON.parse(data);
    whole.scenarios[2].untrue = "the path was late";
    return before + JSON.stringify(whole).replace(/</g, "\\u003c") + after;
  });
  const path = join(dir, "untrue.html");
  writeFileSync(path, marked);
  const { tab } = await open(path);
  const badge = tab.getByRole("link", { name: "not valid" });
  assert.equal(await badge.getAttribute("href"), `#${T}-provenance`);
  assert.ok((await tab.locator(`#${T}-provenance`).textContent())!.includes("the path was late"));
  await tab.context().close();
});

test("a case is picked by its place on every axis", inBrowser, async () => {
  const { tab } = await page();
  await tab.locator(`#${T}-series`).scrollIntoViewIfNeeded();
  await tab.waitForSelector(`#${T}-series .u-over`);
  const pick = tab.locator(`#${T}-series .pickers select`);
  assert.equal(await pick.count(), 3);
  await pick.first().focus();
  await tab.keyboard.press("ArrowDown");
  assert.ok((await tab.locator(`#${T}-series .case-name`).textContent())!.startsWith("throughput: highspeed"));
  assert.equal(await tab.evaluate(() => (document.activeElement as HTMLElement).tagName), "SELECT", "focus stays");
  await tab.context().close();
});

test("stacks are laid over one another in every panel", inBrowser, async () => {
  const { tab, faults } = await page();
  await tab.locator(`#${T}-series`).scrollIntoViewIfNeeded();
  await tab.waitForSelector(`#${T}-series .u-over`);
  const lay = tab.getByLabel("laid over one another").nth(2);
  await lay.selectOption("flow.main.stack");
  const names = (panel: string) => tab.locator(`#${T}-series [data-panel="${panel}"] .u-series:not(.u-low) .u-label`).allTextContents();
  const stacks = ["reno", "highspeed", "cubic", "scalable"];
  for (const panel of ["cwnd", "rtt", "queue", "goodput"]) assert.deepEqual((await names(panel)).slice(1), stacks, panel);
  assert.equal(await tab.locator(`#${T}-series .pickers select`).count(), 2, "the stack is not picked any more");
  assert.equal(await tab.locator(`#${T}-series .case-name`).textContent(), "throughput: by stack, window 64 segments, RTT 10 ms");
  const csv = parseCsv((await file(tab, `${T}-series`, "CSV")).toString());
  for (const stack of stacks) assert.ok(csv[0]!.includes(`goodput_Mbit/s ${stack}`), csv[0]!.join());
  const drawn = (await file(tab, `${T}-series`, "SVG")).toString();
  for (const stack of stacks) assert.ok(drawn.includes(`>${stack}<`), stack);
  await lay.selectOption("");
  assert.equal(await tab.locator(`#${T}-series .pickers select`).count(), 3);
  assert.deepEqual(faults, []);
  await tab.context().close();
});

test("paper has the figures, not the controls", inBrowser, async () => {
  const { tab } = await page("dark");
  const folded = () => tab.locator("details:not([open])").count();
  const before = await folded();
  await tab.emulateMedia({ media: "print" });
  await tab.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.equal(await folded(), 0, "paper is not unfolded");
  assert.ok((await tab.locator(`#${P}-limits summary`).textContent())!.endsWith("more flows"));
  for (const gone of [".files", ".controls", "nav", "button.theme"]) assert.equal(await tab.locator(`${gone}:visible`).count(), 0, gone);
  assert.ok((await tab.locator("table.matrix:visible").count()) >= 6, "built without scrolling");
  assert.ok((await tab.locator("button.saw svg:visible").count()) >= 24);
  assert.equal(await tab.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
  assert.equal(await tab.locator(".explorer:visible").count(), 0);
  assert.ok((await tab.locator(`#${W}-series .paper svg:visible`).count()) >= 4, "a drawing for every panel");
  assert.equal(await tab.locator(`figure[data-name="${T}-metric"] .case-name:visible`).textContent(), "RTT, 95th percentile, ms");
  // The width of A4 between its margins.
  await tab.setViewportSize({ width: 687, height: 900 });
  const wide = await tab.locator("table:visible, svg:visible").evaluateAll((all) => all.filter((e) => e.getBoundingClientRect().right > 688).map((e) => `${e.getAttribute("aria-label") ?? e.className} ${e.getBoundingClientRect().right}`));
  assert.deepEqual(wide, []);
  assert.equal(await tab.locator(`#${T}-series .note.paper:visible`).textContent(), "23 more cases: choose on the page, or draw each with fullpipe figure DIR window --where KEY=VALUE.");
  await tab.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.ok((await folded()) >= before, "folded again");
  const pdf = await tab.pdf({ format: "A4" });
  assert.ok(pdf.length > 20_000);
  await tab.context().close();
});

test("words of a scenario stay words", inBrowser, async () => {
  const { tab } = await page();
  assert.ok((await tab.locator("body").textContent())!.includes('Names with <angle> brackets & ampersands, and a "</script>"'));
  assert.ok((await tab.locator(`#${T} pre.scenario`).textContent())!.includes("</script>"));
  assert.equal(await tab.locator("angle").count(), 0);
  await tab.context().close();
});

function channels(rgb: string): number[] {
  const numbers = /rgba?\(([^)]+)\)/.exec(rgb)?.[1]?.split(",").map(Number);
  assert.ok(numbers, rgb);
  return numbers.slice(0, 3);
}

function hexOf(rgb: string): string {
  return "#" + channels(rgb).map((c) => Math.round(c).toString(16).padStart(2, "0")).join("");
}
