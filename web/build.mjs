// Builds the template of the report: one HTML file with script and style inside, and places for
// title and data.
//
// `node build.mjs` writes it to crates/report/assets/report.html; `node build.mjs --check` compares
// instead and fails when the committed template is not what the sources make.

import { build } from "esbuild";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const TARGET = here("../crates/report/assets/report.html");

async function bundle(entry, loader = {}) {
  const made = await build({
    entryPoints: [here(entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["es2022"],
    legalComments: "none",
    charset: "utf8",
    loader,
    logLevel: "warning",
  });
  return made.outputFiles[0].text.trim();
}

const [script, style, page] = await Promise.all([
  bundle("src/main.ts"),
  bundle("src/style.css"),
  readFile(here("src/page.html"), "utf8"),
]);
if (/<\/(script|style)/i.test(script + style)) throw new Error("script or style would end its element");
// A function as replacement: `$&` in the sources stays as it is.
const html = page
  .replace("/*fullpipe:style*/", () => style)
  .replace("/*fullpipe:script*/", () => script);

if (process.argv.includes("--check")) {
  const committed = await readFile(TARGET, "utf8").catch(() => "");
  if (committed !== html) {
    console.error("crates/report/assets/report.html is not what web/ makes: run `make web` and commit it");
    process.exit(1);
  }
  console.log(`crates/report/assets/report.html is up to date (${html.length} characters)`);
} else {
  await writeFile(TARGET, html);
  console.log(`wrote crates/report/assets/report.html (${html.length} characters)`);
}
