// Builds the template of the report: one HTML file with script and style inside, and places for
// title and data. The licences of the packages inside it stand at its top.
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
    metafile: true,
    absWorkingDir: here("."),
  });
  const others = Object.keys(made.metafile.inputs).filter((path) => !path.startsWith("src/"));
  return { text: made.outputFiles[0].text.trim(), packages: others.map(packageOf) };
}

// The package that a source belongs to.
function packageOf(path) {
  const name = /.*\bnode_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1];
  if (name === undefined) throw new Error(`${path} is neither ours nor of a package`);
  return name;
}

// Name, version and licence of a package, from its own files.
async function notice(name) {
  const file = (path) => readFile(here(`node_modules/${name}/${path}`), "utf8");
  const { version } = JSON.parse(await file("package.json"));
  const licence = (await file("LICENSE")).trim();
  const holder = /^copyright \(c\) /im.test(licence);
  if (!holder) throw new Error(`the licence of ${name} names no holder`);
  if (licence.includes("--")) throw new Error(`the licence of ${name} would end its comment`);
  return `${name} ${version}\n\n${licence}\n`;
}

const [script, style, page] = await Promise.all([
  bundle("src/main.ts"),
  bundle("src/style.css"),
  readFile(here("src/page.html"), "utf8"),
]);
if (/<\/(script|style)/i.test(script.text + style.text)) {
  throw new Error("script or style would end its element");
}
const packages = [...new Set([...script.packages, ...style.packages])].sort();
const notices = (await Promise.all(packages.map(notice))).join("\n");
// A function as replacement: `$&` in the sources stays as it is.
const html = page
  .replace("fullpipe:notices", () => notices)
  .replace("/*fullpipe:style*/", () => style.text)
  .replace("/*fullpipe:script*/", () => script.text);

if (process.argv.includes("--check")) {
  const committed = await readFile(TARGET, "utf8").catch(() => "");
  if (committed !== html) {
    console.error(
      "crates/report/assets/report.html is not what web/ makes: run `make web` and commit it",
    );
    process.exit(1);
  }
  console.log(`crates/report/assets/report.html is up to date (${html.length} characters)`);
} else {
  await writeFile(TARGET, html);
  console.log(`wrote crates/report/assets/report.html (${html.length} characters)`);
}
