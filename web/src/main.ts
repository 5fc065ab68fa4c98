// The page, from its data.

import { VERSION, type Page } from "./generated/data.ts";
import { buildAll, el, openAll } from "./dom.ts";
import { setHeading } from "./figure.ts";
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
    buildAll();
    openAll();
    document.dispatchEvent(new Event("fullpipe:paper"));
  });
  const contents: Entry[] = [];
  const study = page.scenarios.length > 1;
  setHeading(study ? "h4" : "h3");
  const main = el("main", { id: "main", tabindex: -1 });
  const section = (into: HTMLElement, id: string, title: string, level: 1 | 2, parts: (HTMLElement | undefined)[], of = ""): void => {
    const there = parts.filter((p) => p !== undefined);
    if (there.length === 0) return;
    contents.push({ id, title, level });
    into.append(el("section", { id, "aria-labelledby": `${of} ${id}-title`.trim() }, el(level === 1 ? "h2" : "h3", { id: `${id}-title` }, title), ...there));
  };
  const models = page.scenarios.map((s, i) => new Model(page, s, study ? `s${i + 1}-${slug(s.name)}` : slug(s.name)));
  const explorers = models.map(explore);
  const opener = (i: number) => (caseIndex: number): void => explorers[i]?.open(caseIndex);

  const overview = models.flatMap((m) => {
    const parts = [rankingFigure(m)].filter((p) => p !== undefined);
    return study && parts.length > 0 ? [el("h3", {}, el("a", { href: `#${m.id}` }, m.scenario.name)), ...parts] : parts;
  });
  section(main, "overview", "Overview", 1, overview);
  models.forEach((model, i) => {
    const id = (name: string): string => `${model.id}-${name}`;
    const level = study ? 2 : 1;
    const host = study ? el("div", { class: "scenario", id: model.id }) : main;
    // Sections of one kind are told apart by their scenario.
    const part = (name: string, title: string, parts: (HTMLElement | undefined)[]): void => section(host, id(name), title, level, parts, study ? id("title") : "");
    if (study) {
      contents.push({ id: model.id, title: model.scenario.name, level: 1 });
      host.append(el("h2", { id: id("title") }, model.scenario.name), about(model.scenario.about));
      main.append(host);
    }
    const { warmup } = model.scenario;
    // Pictures first: what won, by how much, and how it went.
    part("sawtooth", "Sawtooth", saws(model, opener(i)));
    part("expectations", "Expectations", [expectationsFigure(model, opener(i))]);
    part("tables", "Tables", [...tables(model, opener(i)), warmup === undefined ? undefined : el("p", { class: "note" }, `${warmup}.`)]);
    part("limits", "Host or network", [limitsFigure(model)]);
    part("teeth", "Can they fail?", [teethFigure(model)]);
    part("series", "Time series", [explorers[i]?.element]);
    part("completion", "Short flows", pack(completionFigures(model)));
    part("metrics", "Error bars", pack(metricFigures(model)));
    part("provenance", "Scenario and provenance", [provenance(model)]);
  });
  section(main, "metrics", "Metrics", 1, [glossary(page)]);
  app.append(
    el("a", { class: "skip", href: "#main" }, "Skip to the results"),
    header(page, models.find((m) => m.scenario.untrue !== undefined)),
    el("div", { class: "columns" }, nav(contents), main),
    el("footer", {}, `Made by fullpipe ${page.fullpipe}. This file is complete: it loads nothing. Full series and every run stand in the directory it was written to.`),
  );
}

function header(page: Page, invalid: Model | undefined): HTMLElement {
  const cases = page.scenarios.reduce((n, s) => n + s.cases.length, 0);
  const runs = page.scenarios.reduce((n, s) => n + s.cases.reduce((m, c) => m + c.seeds, 0), 0);
  const expectations = page.scenarios.flatMap((s) => s.expectations);
  const failed = expectations.some((e) => !e.pass);
  const came = outcome(expectations, (n) => counted(n, "expectation"));
  const unclear = expectations.some((e) => e.unclear);
  const [kind, sign] = failed ? ["badge bad", "✗"] : unclear ? ["badge", "?"] : ["badge good", "✓"];
  const verdict = expectations.length === 0 ? undefined : el("span", { class: kind }, `${sign} ${came}`);
  const reasons = page.scenarios.flatMap((s) => s.untrue ?? []).join("; ").replace(/`/g, "");
  const untrue = invalid && el("a", { class: "badge bad", href: `#${invalid.id}-provenance`, title: reasons }, "✗ not valid: numbers of the test bed");
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
