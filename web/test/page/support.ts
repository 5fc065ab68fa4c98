// A real result, its page, and a browser: what the tests of the page share. Where one is missing
// they are skipped, with the reason.

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium, type Browser, type Page as Tab } from "playwright-core";

const ROOT = resolve(process.cwd(), "..");

/** The program: `FULLPIPE`, or the newest that a build has left: an older one makes other pages. */
function program(): string | undefined {
  const target = process.env["CARGO_TARGET_DIR"] ?? join(ROOT, "target");
  const built = ["quick", "release", "debug"].map((p) => join(target, p, "fullpipe")).filter((p) => existsSync(p));
  built.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  return [process.env["FULLPIPE"], ...built].find((p): p is string => p !== undefined && existsSync(p));
}

const BROWSERS = [process.env["CHROMIUM"], "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const browserPath = BROWSERS.find((p): p is string => p !== undefined && existsSync(p));

/** Why the tests cannot run here; false if they can. */
const skip: string | false =
  browserPath === undefined ? "no Chromium: install the package chromium, or set CHROMIUM" : program() === undefined ? "no fullpipe: build it, or set FULLPIPE" : false;

/** Of every test here: a browser that has stopped answering fails one, and holds nothing else up. */
export const inBrowser = { skip, timeout: 300_000 };

export interface Made {
  dir: string;
  /** `result.json` of a scenario of the study. */
  result: (scenario: string) => any;
}

let made: Made | undefined;

/** Runs the scenarios beside these tests as a study, once. */
export function study(): Made {
  if (made) return made;
  const dir = mkdtempSync(join(tmpdir(), "fullpipe-page-"));
  const files = readdirSync("test/fixture").filter((f) => f.endsWith(".toml")).sort();
  // A fixture's expectation fails on purpose: exit code 1.
  run(["run", ...files.map((f) => join("test/fixture", f)), "--out", dir, "--quiet", "--format", "ndjson"], [0, 1]);
  run(["report", dir], [0]);
  made = { dir, result: (scenario) => JSON.parse(readFileSync(join(dir, scenario, "result.json"), "utf8")) };
  return made;
}

function run(args: string[], accepted: number[]): void {
  try {
    execFileSync(program()!, args, { stdio: ["ignore", "ignore", "pipe"] });
  } catch (error) {
    const { status, stderr } = error as { status: number; stderr: Buffer };
    if (!accepted.includes(status)) throw new Error(`fullpipe ${args.join(" ")}: ${status}\n${stderr}`);
  }
}

export interface Opened {
  tab: Tab;
  /** Errors of the console and of scripts. */
  faults: string[];
  /** Addresses asked for beside the page itself. */
  requests: string[];
  /** Milliseconds until the first section was there. */
  load: number;
}

let browser: Browser | undefined;

export async function open(path: string, theme: "light" | "dark" = "light", width = 1400): Promise<Opened> {
  browser ??= await chromium.launch({ executablePath: browserPath!, args: ["--no-sandbox"] });
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: theme, acceptDownloads: true, reducedMotion: "reduce" });
  const tab = await context.newPage();
  const opened: Opened = { tab, faults: [], requests: [], load: 0 };
  tab.on("console", (m) => m.type() === "error" && opened.faults.push(m.text()));
  tab.on("pageerror", (e) => opened.faults.push(e.message));
  tab.on("request", (r) => !r.url().startsWith("data:") && !r.url().startsWith("blob:") && opened.requests.push(r.url()));
  const begin = performance.now();
  await tab.goto(`file://${path}`);
  await tab.waitForSelector("main section");
  opened.load = performance.now() - begin;
  return opened;
}

export async function close(): Promise<void> {
  await browser?.close();
}

/**
 * Brings every figure into being, as a reader who scrolls through the page. A busy machine draws few frames in any given time, and
 * the page hears of what came near the window once per frame: what was passed over is gone back to until nothing is empty.
 */
export async function scrollThrough(tab: Tab): Promise<void> {
  const left = await tab.evaluate(async () => {
    // A window that is not drawn has no frames.
    const frame = () => new Promise((done) => (requestAnimationFrame(done), setTimeout(done, 500)));
    const empty = () => [...document.querySelectorAll<HTMLElement>(".figure-body:empty")].filter((body) => body.offsetParent !== null);
    for (let y = 0; y < document.documentElement.scrollHeight; y += 600) {
      scrollTo({ top: y, behavior: "instant" });
      await frame();
      await frame();
    }
    for (let turn = 0; turn < 500 && empty().length > 0; turn++) {
      empty()[0]!.scrollIntoView({ behavior: "instant", block: "center" });
      await frame();
      await frame();
    }
    scrollTo({ top: 0, behavior: "instant" });
    return empty().length;
  });
  if (left > 0) throw new Error(`${left} figures stayed empty`);
}

/** What a button of a figure offers. Chromium asks once before it lets a page save more than ten files; that one is tried again. */
export async function file(tab: Tab, figure: string, kind: "SVG" | "PNG" | "CSV", again = true): Promise<Buffer> {
  const button = tab.locator(`figure[data-name="${figure}"] button.file`, { hasText: kind });
  const timeout = again ? 5_000 : 60_000;
  const [download] = await Promise.all([tab.waitForEvent("download", { timeout }).catch(() => undefined), button.evaluate((b) => (b as HTMLElement).click())]);
  if (!download && again) return file(tab, figure, kind, false);
  if (!download) throw new Error(`no ${kind} of ${figure}`);
  return readFileSync((await download.path())!);
}
