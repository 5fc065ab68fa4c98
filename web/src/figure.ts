// A figure: caption, controls, what is seen, and its three files.

import { csv, type Cell } from "./csv.ts";
import { download, el, lazy } from "./dom.ts";
import { slug } from "./format.ts";
import { toDom, toFile, type Mark } from "./svg.ts";

export interface Figure {
  /** Name of its files. */
  name: string;
  title: string;
  /** Under the title: what is shown and how to read it. */
  note?: string;
  /** Behind it: what can be done on the screen. */
  hint?: string;
  controls?: HTMLElement[];
  /** What is seen; built when it comes near the window. */
  body: () => HTMLElement | SVGElement;
  /** Height that is kept free until then, pixels. */
  height?: number;
  svg: () => Mark;
  csv: () => Cell[][];
}

export interface Shown {
  element: HTMLElement;
  /** Builds the body again after a control has changed. */
  renew: () => void;
}

let heading: "h3" | "h4" = "h4";

/** Where the titles of figures stand among the headings of the page. */
export function setHeading(tag: "h3" | "h4"): void {
  heading = tag;
}

export function figure(of: Figure): Shown {
  const host = el("div", { class: "figure-body", style: `min-height:${of.height ?? 120}px` });
  let built = false;
  const renew = (): void => {
    if (built) host.replaceChildren(of.body());
  };
  lazy(host, () => {
    built = true;
    host.replaceChildren(of.body());
    host.style.minHeight = "";
  });
  const file = (kind: string, about: string, save: () => void): HTMLElement =>
    el("button", { type: "button", class: "file", "aria-label": `${about} of “${of.title}”`, title: about, onclick: save }, kind);
  const files = el(
    "div",
    { class: "files noprint", role: "group", "aria-label": "Download" },
    file("SVG", "Drawing as SVG", () => download(`${slug(of.name)}.svg`, new Blob([toFile(of.svg(), "light")], { type: "image/svg+xml" }))),
    file("PNG", "Drawing as PNG", () => void png(of.svg()).then((blob) => download(`${slug(of.name)}.png`, blob))),
    file("CSV", "Data as CSV", () => download(`${slug(of.name)}.csv`, new Blob([csv(of.csv())], { type: "text/csv" }))),
  );
  const caption = el(
    "figcaption",
    {},
    el("div", { class: "figure-head" }, el(heading, {}, of.title), files),
    of.note !== undefined && el("p", { class: "note" }, of.note, of.hint !== undefined && el("span", { class: "noprint" }, ` ${of.hint}`)),
  );
  const controls = of.controls && of.controls.length > 0 && el("div", { class: "controls noprint" }, ...of.controls);
  return { element: el("figure", { "data-name": slug(of.name) }, caption, controls, host), renew };
}

/** Less than this a drawing does not get, pixels. */
const LEAST_WIDTH = 280;

/** A drawing as wide as there is room for it, at most `most`: its words keep their size on a narrow window. */
export function fitted(most: number, draw: (width: number) => Mark): HTMLElement {
  const host = el("div");
  let drawn = 0;
  const fit = (room: number): void => {
    const width = Math.max(LEAST_WIDTH, Math.min(most, Math.floor(room)));
    if (width !== drawn) host.replaceChildren(toDom(draw((drawn = width))));
  };
  // Paper does not wait to be measured.
  fit(most);
  new ResizeObserver(() => host.clientWidth > 0 && fit(host.clientWidth)).observe(host);
  return host;
}

/** Pixels per unit of a PNG. */
const PNG_SCALE = 2;

async function png(drawing: Mark): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(toFile(drawing, "light"))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth * PNG_SCALE;
  canvas.height = image.naturalHeight * PNG_SCALE;
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, fail) => canvas.toBlob((b) => (b ? done(b) : fail(new Error("no picture"))), "image/png"));
}
