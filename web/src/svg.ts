// Marks: a figure is a tree of these until it becomes elements of the page or the text of a file.

import { resolve, THEMES, type Theme } from "./colour.ts";

export interface Mark {
  tag: string;
  attrs: Record<string, string | number | undefined>;
  children: (Mark | string)[];
}

export function mark(tag: string, attrs: Mark["attrs"] = {}, ...children: (Mark | string)[]): Mark {
  return { tag, attrs, children };
}

/** A figure of this size in its own units. */
export function svg(width: number, height: number, label: string, children: Mark[]): Mark {
  return mark(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg",
      viewBox: `0 0 ${round(width)} ${round(height)}`,
      width: round(width),
      height: round(height),
      role: "img",
      "aria-label": label,
      "font-family": FONT,
    },
    mark("title", {}, label),
    ...children,
  );
}

export const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif";

export interface TextStyle {
  size?: number;
  fill?: string;
  anchor?: "start" | "middle" | "end";
  weight?: number;
  rotate?: number;
}

export function text(x: number, y: number, content: string, style: TextStyle = {}): Mark {
  const attrs: Mark["attrs"] = {
    x: round(x),
    y: round(y),
    "font-size": style.size ?? 12,
    fill: style.fill ?? "var(--ink)",
    "text-anchor": style.anchor === "start" ? undefined : style.anchor,
    "font-weight": style.weight,
    transform: style.rotate === undefined ? undefined : `rotate(${style.rotate} ${round(x)} ${round(y)})`,
  };
  return mark("text", attrs, content);
}

export function line(x1: number, y1: number, x2: number, y2: number, stroke: string, width = 1, dash?: string): Mark {
  const attrs = { x1: round(x1), y1: round(y1), x2: round(x2), y2: round(y2), stroke, "stroke-width": width };
  return mark("line", { ...attrs, "stroke-dasharray": dash });
}

export function rect(x: number, y: number, width: number, height: number, fill: string, more: Mark["attrs"] = {}): Mark {
  return mark("rect", { x: round(x), y: round(y), width: round(Math.max(0, width)), height: round(Math.max(0, height)), fill, ...more });
}

export function path(d: string, stroke: string, width = 1.5, more: Mark["attrs"] = {}): Mark {
  return mark("path", { d, fill: "none", stroke, "stroke-width": width, "stroke-linejoin": "round", ...more });
}

/** Points joined; a point that is not a number breaks the line. */
export function polyline(points: Iterable<readonly [number, number]>): string {
  let d = "";
  let open = false;
  for (const [x, y] of points) {
    if (!Number.isFinite(x) || !Number.isFinite(y)) {
      open = false;
      continue;
    }
    d += `${open ? "L" : "M"}${round(x)} ${round(y)}`;
    open = true;
  }
  return d;
}

/** Hundredths of a unit are enough for every screen and every printer. */
export function round(v: number): number {
  return Math.round(v * 100) / 100;
}

/** Width of a text, within a few per cent of a common sans-serif: layout must not depend on the browser's fonts. */
export function textWidth(content: string, size: number): number {
  let em = 0;
  for (const c of content) {
    if ("iljtfI.,:;'|!()[] \u202f".includes(c)) em += 0.32;
    else if ("mwMW%@".includes(c)) em += 0.88;
    else if (c >= "A" && c <= "Z") em += 0.68;
    else em += 0.57;
  }
  return em * size;
}

const escapeText = (t: string): string => t.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const escapeAttr = (t: string): string => escapeText(t).replace(/"/g, "&quot;");

/** The text of a file. */
export function toText(node: Mark | string): string {
  if (typeof node === "string") return escapeText(node);
  const attrs = Object.entries(node.attrs)
    .filter(([, v]) => v !== undefined)
    .map(([k, v]) => ` ${k}="${escapeAttr(String(v))}"`)
    .join("");
  if (node.children.length === 0) return `<${node.tag}${attrs}/>`;
  return `<${node.tag}${attrs}>${node.children.map(toText).join("")}</${node.tag}>`;
}

/** A file that stands alone: colours of the theme instead of names, and a background. */
export function toFile(figure: Mark, theme: Theme): string {
  const [width, height] = [Number(figure.attrs["width"]), Number(figure.attrs["height"])];
  const paper = rect(0, 0, width, height, THEMES[theme]["bg"] ?? "#ffffff");
  const [title, ...rest] = figure.children;
  const whole = { ...figure, children: [title ?? "", paper, ...rest] };
  return `<?xml version="1.0" encoding="UTF-8"?>\n${resolve(toText(whole), theme)}\n`;
}

/** Elements of the page. */
export function toDom(node: Mark): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", node.tag);
  for (const [key, value] of Object.entries(node.attrs)) {
    if (value !== undefined && key !== "xmlns") element.setAttribute(key, String(value));
  }
  for (const child of node.children) element.append(typeof child === "string" ? child : toDom(child));
  return element;
}
