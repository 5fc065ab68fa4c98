// Light or dark: what the system prefers, until the reader chooses.

import type { Theme } from "./colour.ts";

let chosen: Theme | undefined;

export function currentTheme(): Theme {
  return document.documentElement.dataset["theme"] === "dark" ? "dark" : "light";
}

function apply(theme: Theme): void {
  document.documentElement.dataset["theme"] = theme;
  document.dispatchEvent(new Event("fullpipe:theme"));
}

export function toggleTheme(): Theme {
  chosen = currentTheme() === "dark" ? "light" : "dark";
  apply(chosen);
  return chosen;
}

/** Follows the system, and turns to paper's colours while printing. */
export function startTheme(beforePrint: () => void): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const preferred = (): Theme => chosen ?? (dark.matches ? "dark" : "light");
  apply(preferred());
  dark.addEventListener("change", () => apply(preferred()));
  const print = matchMedia("print");
  print.addEventListener("change", (e) => apply(e.matches ? "light" : preferred()));
  addEventListener("beforeprint", () => {
    beforePrint();
    apply("light");
  });
  addEventListener("afterprint", () => apply(preferred()));
}
