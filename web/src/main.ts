// The page, from its data.

import { VERSION, type Page } from "./generated/data.ts";
import { buildAll, el } from "./dom.ts";
import { counted, slug } from "./format.ts";
import { Model } from "./model.ts";
import { completionFigures } from "./sections/completion.ts";
import { explore } from "./sections/explore.ts";
import { limitsFigure } from "./sections/limits.ts";
import { metricFigures } from "./sections/metrics.ts";
import { expectationsFigure, outcome, rankingFigure } from "./sections/overview.ts";
import { glossary, provenance } from "./sections/provenance.ts";
import { saws } from "./sections/saws.ts";
import { tables } from "./sections/tables.ts";
import { teethFigure } from "./sections/teeth.ts";
import { currentTheme, startTheme, toggleTheme } from "./theme.ts";

interface Entry {
  id: string;
  title: string;
  level: 1 | 2;
}

function start(): void {
  const app = document.getElementById("app")!;
  const page = JSON.parse(document.getElementById("data")!.textContent ?? "") as Page;
  if (page.version !== VERSION) {
    app.append(el("p", {}, `This page reads data of version ${VERSION}; these are of version ${page.version}.`));
    return;
  }
  startTheme(() => {
    document.querySelectorAll("details").forEach((d) => (d.open = true));
    buildAll();
  });
  const contents: Entry[] = [];
  const study = page.scenarios.length > 1;
  const main = el("main", { id: "main", tabindex: -1 });
  const section = (into: HTMLElement, id: string, title: string, level: 1 | 2, parts: (HTMLElement | undefined)[]): void => {
    const there = parts.filter((p) => p !== undefined);
    if (there.length === 0) return;
    contents.push({ id, title, level });
    into.append(el("section", { id, "aria-labelledby": `${id}-title` }, el(level === 1 ? "h2" : "h3", { id: `${id}-title` }, title), ...there));
  };
  const models = page.scenarios.map((s, i) => new Model(page, s, study ? `s${i + 1}-${slug(s.name)}` : slug(s.name)));
  const explorers = models.map(explore);
  const opener = (i: number) => (caseIndex: number): void => explorers[i]?.open(caseIndex);

  const overview = models.flatMap((m, i) => {
    const parts = [rankingFigure(m), expectationsFigure(m, opener(i))].filter((p) => p !== undefined);
    return study && parts.length > 0 ? [el("h3", {}, el("a", { href: `#${m.id}` }, m.scenario.name)), ...parts] : parts;
  });
  section(main, "overview", "Overview", 1, overview);
  models.forEach((model, i) => {
    const id = (name: string): string => `${model.id}-${name}`;
    const level = study ? 2 : 1;
    const host = study ? el("div", { class: "scenario", id: model.id }) : main;
    if (study) {
      contents.push({ id: model.id, title: model.scenario.name, level: 1 });
      host.append(el("h2", {}, model.scenario.name), about(model.scenario.about));
      main.append(host);
    }
    section(host, id("tables"), "Tables", level, tables(model, opener(i)));
    section(host, id("limits"), "Host or network", level, [limitsFigure(model)]);
    section(host, id("teeth"), "Can they fail?", level, [teethFigure(model)]);
    section(host, id("sawtooth"), "Sawtooth", level, [saws(model, opener(i))]);
    section(host, id("series"), "Time series", level, [explorers[i]?.element]);
    section(host, id("completion"), "Short flows", level, pack(completionFigures(model)));
    section(host, id("metrics"), "Error bars", level, pack(metricFigures(model)));
    section(host, id("provenance"), "Scenario and provenance", level, [provenance(model)]);
  });
  section(main, "metrics", "Metrics", 1, [glossary(page)]);
  app.append(
    el("a", { class: "skip", href: "#main" }, "Skip to the results"),
    header(page),
    el("div", { class: "columns" }, nav(contents), main),
    el("footer", {}, `Made by fullpipe ${page.fullpipe}. This file is complete: it loads nothing. Full series and every run stand in the directory it was written to.`),
  );
}

function header(page: Page): HTMLElement {
  const cases = page.scenarios.reduce((n, s) => n + s.cases.length, 0);
  const runs = page.scenarios.reduce((n, s) => n + s.cases.reduce((m, c) => m + c.seeds, 0), 0);
  const expectations = page.scenarios.flatMap((s) => s.expectations);
  const failed = expectations.some((e) => !e.pass);
  const came = outcome(expectations, (n) => counted(n, "expectation"));
  const verdict = expectations.length === 0 ? undefined : el("span", { class: failed ? "badge bad" : "badge good" }, `${failed ? "✗" : "✓"} ${came}`);
  const untrue = page.scenarios.some((s) => s.untrue !== undefined) ? el("span", { class: "badge bad", title: page.scenarios.flatMap((s) => s.untrue ?? []).join("; ") }, "✗ numbers of the test bed") : undefined;
  const engines = [...new Set(page.scenarios.map((s) => s.engine.slice(0, 12)))];
  const grounds = [...new Set(page.scenarios.map((s) => s.ground))];
  const facts = [
    page.scenarios.length > 1 ? counted(page.scenarios.length, "scenario") : undefined,
    counted(cases, "case"),
    counted(runs, "run"),
    `ground ${grounds.join(", ")}`,
    `fullpipe ${page.fullpipe}`,
    `engine ${engines.join(", ")}`,
  ];
  const theme = el("button", { type: "button", class: "theme noprint" });
  const words = (): void => {
    const other = currentTheme() === "dark" ? "Light" : "Dark";
    theme.textContent = other;
    theme.setAttribute("aria-label", `${other} theme`);
  };
  theme.addEventListener("click", () => toggleTheme());
  document.addEventListener("fullpipe:theme", words);
  words();
  return el(
    "header",
    { class: "top" },
    el("div", { class: "title" }, el("h1", {}, page.title), verdict, untrue, theme),
    el("p", { class: "facts-line" }, facts.filter((f) => f !== undefined).join("  ·  ")),
    about(page.about),
  );
}

/** Figures side by side where the window is wide enough. */
function pack(figures: HTMLElement[]): HTMLElement[] {
  return figures.length === 0 ? [] : [el("div", { class: "pack" }, ...figures)];
}

/** The first paragraph, and the rest for who asks. */
function about(text: string): HTMLElement {
  const [first = "", ...rest] = text.trim().split(/\n\s*\n/).map((p) => p.replace(/\s*\n\s*/g, " "));
  return el("div", { class: "about" }, first !== "" && el("p", {}, first), rest.length > 0 && el("details", {}, el("summary", {}, "More about it"), ...rest.map((p) => el("p", {}, p))));
}

function nav(contents: readonly Entry[]): HTMLElement {
  const items = contents.map((c) => el("li", { class: `level-${c.level}` }, el("a", { href: `#${c.id}` }, c.title)));
  return el("nav", { class: "contents noprint", "aria-label": "Contents" }, el("ul", {}, ...items));
}

start();
