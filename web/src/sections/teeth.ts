// Can the expectations fail? What `fullpipe falsify` found, as expectations by wrong worlds.

import type { Cell } from "../csv.ts";
import { el, scroller, unseen } from "../dom.ts";
import { figure } from "../figure.ts";
import { counted } from "../format.ts";
import type { Falsified, Teeth, World } from "../generated/data.ts";
import type { Model } from "../model.ts";
import { svg, text, textWidth, type Mark } from "../svg.ts";

type Sign = "fails" | "passes" | "";
const SHAPE: Record<Sign, string> = { fails: "●", passes: "○", "": "" };

/** What an expectation does in a world: it fails, passes although numbers differ, or was not judged there. */
export function sign(e: Teeth, world: number): Sign {
  if (e.caught.includes(world)) return "fails";
  return e.missed.includes(world) ? "passes" : "";
}

/** In one sentence. */
export function verdict(found: Falsified): string {
  const toothless = found.expectations.filter((e) => e.toothless && e.excuse === undefined).length;
  const dead = found.worlds.filter((w) => w.effect === "dead").length;
  const weak = found.expectations.filter((e) => e.weak).length;
  const teeth = toothless === 0 ? `every expectation can fail${weak === 0 ? "" : `, ${weak} only where one thing is wrong`}` : `${toothless} of ${counted(found.expectations.length, "expectation")} ${toothless === 1 ? "is" : "are"} toothless`;
  return dead === 0 ? teeth : `${teeth}, ${counted(dead, "knob")} ${dead === 1 ? "is" : "are"} dead`;
}

/** What is said of a world below the table. */
export function effect(world: World): string {
  switch (world.effect) {
    case "caught":
      return `noticed by ${counted(world.caught_by, "expectation")}`;
    case "missed":
      return "numbers change, nothing fails";
    case "inert":
      return "inert, as the file says: no number changes";
    case "dead":
      return "dead: no number changes";
    default:
      return "not judged";
  }
}

export function teethFigure(model: Model): HTMLElement | undefined {
  const found = model.scenario.falsification;
  if (!found) return undefined;
  const title = `Can they fail? ${verdict(found)}`;
  const bad = (e: Teeth): boolean => e.toothless && e.excuse === undefined;
  const judged = (e: Teeth): string => (bad(e) ? "✗ toothless" : e.toothless ? "by intent" : e.weak ? "weak" : "✓");
  const numbered = found.worlds.map((world, i) => ({ world, number: String(i + 1) }));
  const table = (): HTMLElement =>
    el(
      "table",
      { class: "expectations teeth" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, unseen("verdict")), el("th", { scope: "col" }, "expectation"), ...numbered.map(({ world, number }) => el("th", { scope: "col", class: "number", title: world.about }, number)))),
      el(
        "tbody",
        {},
        ...found.expectations.map((e) =>
          el(
            "tr",
            { class: bad(e) ? "fail" : "pass" },
            el("td", { class: "verdict nowrap" }, judged(e)),
            el("th", { scope: "row" }, e.name, e.excuse !== undefined && el("span", { class: "muted" }, ` ${e.excuse}`), e.weak && el("span", { class: "muted" }, ` fails only in “${e.caught.map((i) => found.worlds[i]?.about ?? "").join("”, “")}”`)),
            ...found.worlds.map((world, i) => {
              const s = sign(e, i);
              return el("td", { class: "number", title: s === "" ? undefined : `${s} in “${world.about}”` }, SHAPE[s]);
            }),
          ),
        ),
      ),
    );
  const worlds = (): HTMLElement =>
    el(
      "table",
      {},
      el("thead", {}, el("tr", {}, ...[unseen("number"), "wrong world", "what differs", unseen("effect")].map((h) => el("th", { scope: "col" }, h)))),
      el(
        "tbody",
        {},
        ...numbered.map(({ world, number }) =>
          el("tr", {}, el("td", { class: "number" }, number), el("th", { scope: "row" }, world.about, world.line !== undefined && el("span", { class: "muted" }, ` [[negative]], line ${world.line}`)), el("td", {}, el("code", {}, differs(world))), el("td", { class: "nowrap" }, effect(world))),
        ),
      ),
    );
  const body = (): HTMLElement => scroller(title, table(), el("details", { open: found.worlds.length <= OPEN }, el("summary", {}, counted(found.worlds.length, "wrong world")), worlds()));
  const followed = found.first_failure ? " Each expectation was followed to its first failure only." : "";
  return figure({
    name: `${model.id}-teeth`,
    title,
    note: `A wrong world is the scenario with something taken away or replaced. ● the expectation fails there, as it should somewhere; ○ numbers differ and it passes. One that fails nowhere is toothless: it would hold whatever the subject does. Weak: it fails only where one thing is wrong that the file does not name.${followed}`,
    height: 80 + 26 * found.expectations.length,
    body,
    svg: () => drawing(found, title, judged),
    csv: (): Cell[][] => [
      ["expectation", "line", "toothless", "weak", "world", "effect", "in_this_world"],
      ...found.expectations.flatMap((e) => found.worlds.map((w, i): Cell[] => [e.name, e.line, String(e.toothless), String(e.weak), w.about, w.effect, sign(e, i)])),
    ],
  }).element;
}

function differs(world: World): string {
  const some = world.set.slice(0, KEYS).join(", ");
  return world.set.length > KEYS ? `${some} and ${world.set.length - KEYS} more` : some;
}

function drawing(found: Falsified, title: string, judged: (e: Teeth) => string): Mark {
  const left = Math.max(...found.expectations.map((e) => textWidth(e.name, 11))) + 110;
  const marks: Mark[] = [text(12, 22, title, { size: 14, weight: 600 })];
  const x = (i: number): number => left + 22 * i;
  found.worlds.forEach((w, i) => {
    marks.push(text(x(i), 44, String(i + 1), { size: 10, fill: "var(--muted)" }));
    marks.push(text(12, 74 + 18 * (found.expectations.length + i), `${i + 1}  ${w.about}`, { size: 10, fill: "var(--muted)" }));
  });
  found.expectations.forEach((e, row) => {
    const y = 62 + 18 * row;
    marks.push(text(12, y, judged(e), { size: 11, weight: 600 }), text(90, y, e.name, { size: 11 }));
    found.worlds.forEach((_, i) => {
      const shape = SHAPE[sign(e, i)];
      if (shape !== "") marks.push(text(x(i), y, shape, { size: 11 }));
    });
  });
  const width = Math.max(x(found.worlds.length) + 12, textWidth(title, 14) + 24, 480);
  return svg(width, 84 + 18 * (found.expectations.length + found.worlds.length), title, marks);
}

/** Worlds that are listed without being asked for, and keys of one. */
const OPEN = 12;
const KEYS = 3;
