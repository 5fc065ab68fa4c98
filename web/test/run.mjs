// Runs the tests of one kind: `node test/run.mjs unit` or `node test/run.mjs page`. TypeScript is
// bundled, then node:test runs.

import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const kind = process.argv[2] === "page" ? "page" : "unit";
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const sources = readdirSync(here(kind)).filter((f) => f.endsWith(".test.ts"));
const out = here(`../.build/${kind}`);
rmSync(out, { recursive: true, force: true });
await build({
  entryPoints: sources.map((f) => here(`${kind}/${f}`)),
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  outdir: out,
  outExtension: { ".js": ".mjs" },
  external: ["playwright-core"],
  sourcemap: "inline",
  logLevel: "warning",
});
const files = sources.map((f) => `${out}/${f.replace(/\.ts$/, ".mjs")}`);
const ran = spawnSync(process.execPath, ["--enable-source-maps", "--test", "--test-reporter=spec", ...process.argv.slice(3), ...files], { stdio: "inherit" });
process.exit(ran.status ?? 1);
