// A coloured table: two axes or more, one number per cell. The number is exact; the colour only
// helps to find it.

import { diverging, sequential, textOn, type Theme } from "../colour.ts";
import type { Cell } from "../csv.ts";
import { el, scroller } from "../dom.ts";
import { meanWords } from "../format.ts";
import { half, type Estimate } from "../model.ts";
import { mark, rect, svg, text, textWidth, type Mark } from "../svg.ts";

export interface Matrix {
  title: string;
  /** Heading of the rows. */
  rowHead: string;
  rows: string[];
  /** Headings of the columns, outer levels first; the spans of a level add up to the columns. */
  columnHeads: { title: string; heads: { label: string; span: number }[] }[];
  cells: (MatrixCell | undefined)[][];
  /** Of every column, or of all. */
  style: CellStyle | CellStyle[];
}

export interface CellStyle {
  colours: Colours;
  count: boolean;
  digits: number;
  unit: string;
}

function styleOf(m: Matrix, column: number): CellStyle {
  return Array.isArray(m.style) ? m.style[column]! : m.style;
}

export interface MatrixCell {
  estimate: Estimate;
  /** Case, if it is one. */
  case?: number;
}

export type Colours = { kind: "amount"; low: number; high: number } | { kind: "signed"; most: number } | { kind: "none" };

/** The colours of these values: amounts from the lowest to the highest, signed values around zero. */
export function coloursOf(values: Iterable<number>, signed: boolean): Colours {
  let low = Infinity;
  let high = -Infinity;
  for (const v of values) {
    low = Math.min(low, v);
    high = Math.max(high, v);
  }
  if (!(high >= low)) return { kind: "none" };
  if (signed) return { kind: "signed", most: Math.max(Math.abs(low), Math.abs(high)) || 1 };
  return { kind: "amount", low, high };
}

export function colour(value: number, colours: Colours, theme: Theme): string | undefined {
  if (colours.kind === "none") return undefined;
  if (colours.kind === "signed") return diverging(value / colours.most, theme);
  // A table of equal values has no light and dark.
  const span = colours.high - colours.low;
  return sequential(span > 1e-12 * Math.abs(colours.high) ? (value - colours.low) / span : 0.25, theme);
}

/** What stands in a cell. */
export function cellText(cell: MatrixCell, m: Pick<CellStyle, "count" | "digits">): { value: string; half: string } {
  const [value, spread] = meanWords(cell.estimate.mean, half(cell.estimate), m.count, m.digits);
  return { value, half: spread };
}

/** The table of the page. Arrow keys move between its cells; Enter opens the cell's case. */
export function table(m: Matrix, open?: (caseIndex: number) => void): HTMLElement {
  const head = m.columnHeads.map((level, depth) =>
    el(
      "tr",
      {},
      depth === 0 && el("th", { scope: "col", class: "corner", rowspan: m.columnHeads.length }, m.rowHead),
      ...level.heads.map((h) => el("th", { scope: h.span > 1 ? "colgroup" : "col", colspan: h.span > 1 ? h.span : undefined, class: h.span > 1 ? "span" : undefined }, h.label)),
    ),
  );
  const body = m.rows.map((row, r) =>
    el("tr", {}, el("th", { scope: "row" }, row), ...(m.cells[r] ?? []).map((cell, c) => cellElement(cell, styleOf(m, c)))),
  );
  const grid = el("table", { class: "matrix", role: "grid", "aria-label": m.title, style: roomOf(m) }, el("thead", {}, ...head), el("tbody", {}, ...body));
  navigate(grid, (r, c) => {
    const at = m.cells[r]?.[c]?.case;
    if (at !== undefined) open?.(at);
  });
  const title = m.columnHeads.map((l) => l.title).filter((t) => t !== "").join(" · ");
  return scroller(m.title, title !== "" && el("p", { class: "columns-title", "aria-hidden": true }, `columns: ${title}`), grid);
}

/** Widths of the table and of its row heads in units of its letters, which are as large as paper has room for. */
function roomOf(m: Matrix): string {
  // The widest of the common fonts, bold headings, and room around.
  const width = (words: string): number => 1.15 * textWidth(words, 1);
  const longest = (words: string): number => Math.max(...words.split(" ").map((w) => 0.9 * width(w)));
  const columns = (m.columnHeads.at(-1)?.heads ?? []).map((head, c) => {
    const texts = m.cells.flatMap((row) => (row[c] ? [cellText(row[c], styleOf(m, c))] : []));
    return 1 + Math.max(longest(head.label), ...texts.map((t) => Math.max(width(t.value), 0.82 * width(t.half))));
  });
  const head = 1 + Math.max(longest(m.rowHead), ...m.rows.map((r) => Math.min(10, width(r))));
  return `--ems:${Math.ceil(columns.reduce((sum, w) => sum + w, head))};--head:${head.toFixed(1)}em`;
}

function cellElement(cell: MatrixCell | undefined, m: CellStyle): HTMLElement {
  if (!cell) return el("td", { class: "empty", tabindex: -1 }, "–");
  const { value, half } = cellText(cell, m);
  const light = colour(cell.estimate.mean, m.colours, "light");
  const dark = colour(cell.estimate.mean, m.colours, "dark");
  const style = light && dark ? `--l:${light};--lt:${textOn(light)};--d:${dark};--dt:${textOn(dark)}` : undefined;
  const unit = m.unit === "" ? "" : ` ${m.unit}`;
  const full = `${cell.estimate.mean}${unit}${Number.isNaN(cell.estimate.low) ? "" : `, 95 % interval ${cell.estimate.low} to ${cell.estimate.high}`}`;
  return el(
    "td",
    { class: light ? "heat" : undefined, style, title: full, tabindex: -1, "data-value": cell.estimate.mean, "data-case": cell.case },
    el("span", { class: "value" }, value),
    half !== "" && el("span", { class: "half" }, half),
  );
}

/** Roving focus over the cells of a table. */
function navigate(grid: HTMLTableElement, enter: (row: number, column: number) => void): void {
  const rows = [...grid.tBodies[0]!.rows].map((r) => [...r.querySelectorAll("td")]);
  const cells = rows.flat();
  if (cells[0]) cells[0].tabIndex = 0;
  const place = (cell: Element | null): [number, number] | undefined => {
    const r = rows.findIndex((row) => row.includes(cell as HTMLTableCellElement));
    return r < 0 ? undefined : [r, rows[r]!.indexOf(cell as HTMLTableCellElement)];
  };
  const focus = (r: number, c: number): void => {
    const cell = rows[r]?.[c];
    if (!cell) return;
    for (const other of cells) other.tabIndex = -1;
    cell.tabIndex = 0;
    cell.focus();
  };
  grid.addEventListener("keydown", (event) => {
    const at = place((event.target as Element).closest("td"));
    if (!at) return;
    const [r, c] = at;
    const last = (rows[r]?.length ?? 1) - 1;
    const moves: Record<string, () => void> = {
      ArrowRight: () => focus(r, c + 1),
      ArrowLeft: () => focus(r, c - 1),
      ArrowDown: () => focus(r + 1, c),
      ArrowUp: () => focus(r - 1, c),
      Home: () => focus(r, 0),
      End: () => focus(r, last),
      Enter: () => enter(r, c),
      " ": () => enter(r, c),
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move();
  });
  grid.addEventListener("dblclick", (event) => {
    const at = place((event.target as Element).closest("td"));
    if (at) enter(...at);
  });
}

/** The same as a drawing. */
export function drawing(m: Matrix, theme: Theme = "light"): Mark {
  const size = 12;
  const texts = m.cells.map((row) => row.map((cell, c) => (cell ? cellText(cell, styleOf(m, c)) : undefined)));
  const columns = m.cells[0]?.length ?? 0;
  const leaf = m.columnHeads.at(-1)?.heads ?? [];
  const rowWidth = Math.max(textWidth(m.rowHead, size), ...m.rows.map((r) => textWidth(r, size))) + 16;
  const cellWidth = Math.max(
    56,
    ...leaf.map((h) => textWidth(h.label, size) + 14),
    ...texts.flat().map((t) => (t ? Math.max(textWidth(t.value, size), textWidth(t.half, size - 2)) + 16 : 0)),
  );
  const tall = texts.flat().some((t) => t && t.half !== "");
  const [cellHeight, headHeight, top] = [tall ? 34 : 24, 20, 34];
  const body = top + headHeight * m.columnHeads.length + 4;
  const width = 12 + rowWidth + cellWidth * columns + 12;
  const height = body + cellHeight * m.rows.length + 12;
  const marks: Mark[] = [text(12, 20, m.title, { size: 14, weight: 600 }), text(12, body - 10, m.rowHead, { size, fill: "var(--muted)" })];
  m.columnHeads.forEach((level, depth) => {
    let from = 0;
    for (const head of level.heads) {
      const x = 12 + rowWidth + cellWidth * (from + head.span / 2);
      marks.push(text(x, top + headHeight * depth + 14, head.label, { size, anchor: "middle", weight: 600 }));
      from += head.span;
    }
  });
  m.rows.forEach((row, r) => {
    const y = body + cellHeight * r;
    marks.push(text(12, y + cellHeight / 2 + 4, row, { size }));
    m.cells[r]?.forEach((cell, c) => {
      const x = 12 + rowWidth + cellWidth * c;
      const t = texts[r]?.[c];
      if (!cell || !t) {
        marks.push(text(x + cellWidth / 2, y + cellHeight / 2 + 4, "–", { size, anchor: "middle", fill: "var(--muted)" }));
        return;
      }
      const fill = colour(cell.estimate.mean, styleOf(m, c).colours, theme);
      const ink = fill ? textOn(fill) : "var(--ink)";
      if (fill) marks.push(rect(x + 1, y + 1, cellWidth - 2, cellHeight - 2, fill, { rx: 2 }));
      marks.push(text(x + cellWidth / 2, y + (t.half === "" ? cellHeight / 2 + 4 : 15), t.value, { size, anchor: "middle", fill: ink }));
      if (t.half !== "") marks.push(text(x + cellWidth / 2, y + 28, t.half, { size: size - 2, anchor: "middle", fill: ink }));
    });
  });
  return svg(width, height, m.title, [mark("g", {}, ...marks)]);
}

/** One line per cell. */
export function rows(m: Matrix): Cell[][] {
  const levels = m.columnHeads.map((level) => level.heads.flatMap((h) => Array.from({ length: h.span }, () => h.label)));
  const head: Cell[] = [m.rowHead, ...m.columnHeads.map((l, i) => l.title || `column ${i + 1}`), "mean", "ci95_low", "ci95_high"];
  const out: Cell[][] = [head];
  m.cells.forEach((row, r) =>
    row.forEach((cell, c) => {
      if (cell) out.push([m.rows[r], ...levels.map((l) => l[c]), cell.estimate.mean, cell.estimate.low, cell.estimate.high]);
    }),
  );
  return out;
}
