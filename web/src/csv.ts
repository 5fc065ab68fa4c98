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
