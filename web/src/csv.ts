// Tables as CSV after RFC 4180, numbers at full precision.

export type Cell = string | number | null | undefined;

export function csv(rows: readonly (readonly Cell[])[]): string {
  return rows.map((row) => row.map(cell).join(",") + "\r\n").join("");
}

function cell(value: Cell): string {
  if (value === null || value === undefined || (typeof value === "number" && Number.isNaN(value))) return "";
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

/** The rows of a CSV text. */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let field = "";
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!;
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') field += text[i++];
      else if (c === '"') quoted = false;
      else field += c;
    } else if (c === '"') quoted = true;
    else if (c === ",") {
      row.push(field);
      field = "";
    } else if (c === "\n") {
      rows.push([...row, field]);
      row = [];
      field = "";
    } else if (c !== "\r") field += c;
  }
  if (field !== "" || row.length > 0) rows.push([...row, field]);
  return rows;
}
