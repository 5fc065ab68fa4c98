// Where the numbers come from: the file, the seeds, the engine, the machine, and what every metric
// means.

import type { Page } from "../generated/data.ts";
import { el, prose, scroller } from "../dom.ts";
import { number, unit } from "../format.ts";
import type { Model } from "../model.ts";

const GROUNDS: Record<string, string> = {
  sim: "sim: the simulator, in virtual time",
  udp: "udp: the sender and receiver of the simulator over real UDP sockets, in real time",
};

export function provenance(model: Model): HTMLElement {
  const s = model.scenario;
  const facts: [string, string][] = [
    ["scenario", `${s.name} (${s.origin})`],
    ["ground", GROUNDS[s.ground] ?? s.ground],
    ["cases", String(s.cases.length)],
    ["seeds", model.seeds()[0] === model.seeds()[1] ? s.seeds.join(", ") : `${model.seeds().join(" to ")} a case, from ${s.seeds[0]}`],
    ...s.fixed,
    [s.ground === "sim" ? "virtual time" : "time", `${number(s.cases.reduce((sum, c) => sum + c.simulated_s * c.seeds, 0), 6)} s`],
    ["delivered packets", s.cases.reduce((sum, c) => sum + c.delivered_packets, 0).toLocaleString("en")],
    ...(s.fidelity !== undefined ? ([["test bed, the worst of all runs", s.fidelity]] as [string, string][]) : []),
    ["fullpipe", s.fullpipe],
    ["engine", s.engine],
    ["machine", s.machine],
    ["SHA-256 of the scenario", s.text_sha256],
  ];
  return el(
    "div",
    {},
    s.untrue !== undefined && el("p", { class: "bad" }, ...prose(s.untrue)),
    s.unsure !== undefined && el("p", { class: "bad" }, ...prose(s.unsure)),
    el("dl", { class: "facts" }, ...facts.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, ...prose(v))])),
    el("details", {}, el("summary", {}, "The scenario file"), el("pre", { class: "scenario", tabindex: 0 }, s.text)),
  );
}

export function glossary(page: Page): HTMLElement {
  return el(
    "details",
    {},
    el("summary", {}, `The ${page.metrics.length} metrics of this page, each with formula and source`),
    scroller(
      "Metrics",
      el(
        "table",
        { class: "glossary" },
        el("thead", {}, el("tr", {}, ...["metric", "of a", "unit", "meaning", "formula", "source"].map((h) => el("th", { scope: "col" }, h)))),
        el("tbody", {}, ...page.metrics.map((m) => el("tr", {}, el("th", { scope: "row" }, el("code", {}, m.name)), el("td", {}, m.scope), el("td", {}, unit(m.unit)), el("td", {}, m.about), el("td", {}, m.formula.replace(/`/g, "")), el("td", {}, m.source)))),
      ),
    ),
  );
}
