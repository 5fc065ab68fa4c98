"use strict";
(() => {
const D = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const cells = new Map(D.cells.map((c) => [c.id, c]));
const metric = Object.fromEntries(D.metrics.map((m) => [m.key, m]));
const order = [];

function el(name, attributes, ...children) {
  const e = name.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4)) : document.createElement(name);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (v === null || v === undefined || v === false) continue;
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v); else e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return e;
}
const withUnit = (text, m) => (text !== "-" && metric[m].unit ? text + " " + metric[m].unit : text);
const percent = (line) => (line.of ? (100 * line.inside) / line.of : 0);
const buffer = (c) => `${c.buffer} BDP (${c.packets} packets)`;
const path = (p) => `${p[0]} Mbit/s, ${p[1]} ms`;

// ---- summary

const KINDS = { single: "One flow, losses of the buffer", loss: "Response to random loss", pair: "Two flows", many: "Sixteen flows",
  queue: "RED, PIE, CoDel, FQ-CoDel", ecn: "The same with ECN", outage: "Outages", reorder: "Reordering", acks: "ACK loss",
  reverse: "Reverse traffic", transfer: "Finite transfers" };
const LONG = "6.1-hz100"; // the kernel of the long cells, which have tables of their own
const long = (kind) => D.cells.filter((c) => c.kind === kind && c.kernel === LONG);

function summary() {
  const single = D.cells.filter((c) => c.kind === "single");
  const odd = single.filter((c) => !c.inside).length;
  $("lead").append(`Linux ${D.kernel.replace(/^Linux /, "")} in virtual time and fullpipe with preset linux, on the same paths; `
    + `${D.cells.length} cells compared, ${odd} of ${single.length} single-flow cells outside a limit, `);
  $("lead").append(D.unexplained ? el("span", { class: "warn" }, `the causes of ${D.unexplained} deviations are open.`) : "every deviation has its cause written down.");
  for (const kind of Object.keys(KINDS)) {
    const lines = D.summary.filter((l) => l.kind === kind);
    if (!lines.length) continue;
    const box = el("div", { class: "figure" }, el("h3", {}, KINDS[kind]));
    for (const l of lines) {
      const name = l.metric ? `${metric[l.metric].name}: ${l.limit}` : "all limits";
      const low = percent(l) < 90;
      box.append(
        el("span", { class: l.metric ? "" : "all" }, name),
        el("span", { class: l.metric ? "" : "all" }, `${l.inside} of ${l.of}, ${percent(l).toFixed(1)} %`),
        el("div", { class: low ? "meter low" : "meter", title: "the bar marks 90 %" }, el("i", { style: `width:${percent(l)}%` }), el("b")));
    }
    $("summary").append(box);
  }
  if (D.missing.length) {
    $("missing").append(el("h2", {}, "Not compared"),
      el("details", {}, el("summary", {}, `${D.missing.length} cells have no result on one side`), el("p", {}, D.missing.join(", "))));
  }
}

// ---- the table of single flows

const VIEWS = [["worst", "worst"], ["goodput"], ["rtt_mean"], ["first_loss_window"], ["loss_events"], ["retransmits"], ["rmse", "difference of the curves (RMSE)"]];
let view = "worst";

/** Load of a cell in the current view: [number or null for a limit no number keeps, text]. */
function load(c) {
  if (view === "rmse") {
    const r = Math.max(...c.rmse, 0);
    return [r / 0.2, r.toFixed(2)];
  }
  const limits = c.deviations.filter((d) => d.limit && (view === "worst" || d.m === view));
  if (limits.some((d) => d.load === null)) return [null, "∞"];
  const worst = Math.max(...limits.map((d) => d.load), 0);
  const near = worst > 1 && worst < 1.05 ? worst.toFixed(2) : worst.toFixed(1);
  return [worst, worst >= 10 ? worst.toFixed(0) : near];
}
const shade = (l) => (l === null || l > 2 ? "o2" : l > 1 ? "o1" : l > 0.5 ? "q2" : l > 0.2 ? "q1" : "q0");

function told(c) {
  const lines = c.deviations.filter((d) => d.limit).map((d) =>
    `${d.inside ? " " : "!"} ${metric[d.m].name}${d.f === null ? "" : " of flow " + (d.f + 1)}: Linux ${withUnit(d.ot, d.m)}, simulator ${withUnit(d.st, d.m)}, ${d.size} (limit ${d.limit})`);
  if (c.rmse.length) lines.push(`  RMSE of the curves: ${c.rmse.map((r) => r.toFixed(3)).join(", ")}`);
  if (!c.inside) lines.push(c.unexplained ? "  cause: unexplained" : "  the cause is written down");
  return `${c.id}\n${lines.join("\n")}`;
}

function cellButton(c) {
  const [l, text] = load(c);
  const unexplained = view !== "rmse" && c.unexplained && (l === null || l > 1);
  return el("button", {
    class: `cell ${shade(l)}${unexplained ? " unexplained" : ""}`, "data-id": c.id, title: told(c),
    "aria-label": `${c.id}: ${text} of the limit${c.inside ? "" : c.unexplained ? ", outside, cause open" : ", outside"}`,
    onclick: () => open(c.id),
  }, text);
}

function grid() {
  const single = new Map(long("single").map((c) => [`${c.flows[0]} ${c.path} ${c.buffer}`, c]));
  const head = el("tr", {}, el("th", {}, ""));
  const sub = el("tr", {}, el("th", { class: "small" }, "buffer, BDP"));
  for (const p of D.paths) {
    head.append(el("th", { class: "group", colspan: D.buffers.length, scope: "colgroup" }, path(p)));
    D.buffers.forEach((b, i) => sub.append(el("th", { class: i ? "small" : "small gap", scope: "col" }, String(b))));
  }
  sub.append(el("th", { class: "small", scope: "col" }, "inside"));
  const body = el("tbody");
  order.length = 0;
  for (const m of D.modules) {
    const row = el("tr", {}, el("th", { scope: "row" }, m));
    let inside = 0, of = 0;
    for (const p of D.paths) D.buffers.forEach((b, i) => {
      const c = single.get(`${m} ${p} ${b}`);
      if (c) { order.push(c.id); of += 1; const l = load(c)[0]; inside += l !== null && l <= 1 ? 1 : 0; }
      row.append(el("td", { class: i ? "" : "gap" }, c ? cellButton(c) : el("div", { class: "none", title: "not compared" }, "·")));
    });
    row.append(el("td", { class: "small num" }, of ? `${inside}/${of}` : ""));
    body.append(row);
  }
  $("grid").replaceChildren(el("thead", {}, head, sub), body);
  const key = (cls, text, words) => [el("span", { class: "key " + cls }, text), words];
  $("legend").replaceChildren(...(view === "rmse"
    ? ["Root-mean-square difference of the windows after aligning on the first loss, over Linux's mean window; it has no limit. ",
      ...key("q0", "0.04", "and less"), ...key("q1", "0.1", ""), ...key("q2", "0.2", ""), ...key("o1", "0.4", ""), ...key("o2", "1", "and more")]
    : [view === "worst" ? "Worst deviation" : `Deviation of ${metric[view].name}`, " in units of its limit. Inside:",
      ...key("q0", "0.2", "and less"), ...key("q1", "0.5", ""), ...key("q2", "1", ""), ". Outside:",
      ...key("o1", "2", ""), ...key("o2", "4", "and more"), ...key("o1 unexplained", "2", "no cause written down")]),
    ". Choose a cell for both windows and every number; arrow keys move.");
}

function choice() {
  for (const [key, words] of VIEWS) {
    $("choice").append(el("button", {
      "aria-pressed": String(key === view), onclick: (e) => {
        view = key;
        for (const b of $("choice").children) b.setAttribute("aria-pressed", String(b === e.currentTarget));
        grid();
      },
    }, words || metric[key].name));
  }
  $("grid").addEventListener("keydown", (e) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key];
    const td = e.target.closest("td");
    if (!step || !td) return;
    e.preventDefault();
    let row = td.parentElement, column = td.cellIndex;
    for (;;) {
      row = step[0] < 0 ? row.previousElementSibling : step[0] > 0 ? row.nextElementSibling : row;
      column += step[1];
      const button = row && row.cells[column] && row.cells[column].querySelector("button");
      if (button) { button.focus(); return; }
      if (!row || !row.cells[column]) return;
    }
  });
}

// ---- random loss, pairs, many

const swatch = (cls) => el("span", { class: "swatch " + cls });

function losses() {
  const all = long("loss");
  if (!all.length) { $("loss").append(el("p", { class: "note" }, "Not compared.")); return; }
  const cwnd = (c) => c.deviations.find((d) => d.m === "cwnd_mean");
  const head = el("tr", {}, el("th", {}, ""));
  const scale = {};
  for (const p of D.losses) {
    const ds = all.filter((c) => c.loss === p).map(cwnd);
    scale[p] = Math.min(60, Math.max(5, ...ds.map((d) => 100 * Math.max(d.half[0], Math.abs(d.s - d.o) + d.half[1]) / d.o)));
    head.append(el("th", { class: "group" }, `p = ${p.toExponential().replace("e-", "e-")}, axis ± ${scale[p].toFixed(0)} %`));
  }
  const body = el("tbody");
  for (const m of D.modules) {
    const row = el("tr", {}, el("th", { scope: "row" }, m));
    for (const p of D.losses) {
      const c = all.find((c) => c.flows[0] === m && c.loss === p);
      if (!c) { row.append(el("td", { class: "none" }, "·")); continue; }
      const d = cwnd(c), W = 150;
      const x = (v) => Math.max(2, Math.min(W - 2, W / 2 + (100 * (v - d.o) / d.o / scale[p]) * (W / 2 - 4)));
      const bar = (v, half, y, cls) => [
        el("svg:line", { x1: x(v - half), x2: x(v + half), y1: y, y2: y, class: cls, style: "stroke-width:3" }),
        el("svg:circle", { cx: x(v), cy: y, r: 3.5, class: cls })];
      order.push(c.id);
      row.append(el("td", { class: "text" }, el("button", {
        "data-id": c.id, title: told(c), class: d.inside ? "response" : "response o1", onclick: () => open(c.id),
      }, el("svg:svg", { width: W, height: 24, viewBox: `0 0 ${W} 24`, "aria-hidden": "true" },
        el("svg:line", { x1: W / 2, x2: W / 2, y1: 1, y2: 23, class: "tick" }), ...bar(d.o, d.half[0], 8, "linux"), ...bar(d.s, d.half[1], 16, "sim")),
      el("span", { class: "small" }, `${d.ot} / ${d.st}${d.inside ? "" : " !"}`))));
    }
    body.append(row);
  }
  $("loss").append(el("p", { class: "note" }, "Mean window of ", String(all[0].repeats), " runs, segments, with its 95 % interval, around Linux's mean; on 100 Mbit/s, 40 ms, buffer 1 BDP.",
    swatch(""), "Linux", swatch("s"), "simulator. Numbers: Linux / simulator."),
  el("div", { class: "wide" }, el("table", {}, el("thead", {}, head), body)));
}

function pairs() {
  const all = long("pair");
  if (!all.length) { $("pair").append(el("p", { class: "note" }, "Not compared.")); return; }
  const body = el("tbody");
  for (const c of all) {
    order.push(c.id);
    const shares = c.deviations.filter((d) => d.m === "share"), winner = c.deviations.find((d) => d.m === "winner");
    const W = 300, bar = (side, y) => {
      const a = (W * shares[0][side]) / 100, b = (W * shares[1][side]) / 100, cls = side === "o" ? "linux" : "sim";
      return [el("svg:rect", { x: 0, y, width: a, height: 9, class: cls }), el("svg:rect", { x: a + 1, y, width: b, height: 9, class: cls + " b" })];
    };
    const worst = Math.max(...shares.map((d) => Math.abs(d.s - d.o)));
    body.append(el("tr", {}, el("th", { scope: "row" }, c.flows.join(" + ") + (c.stagger ? `, ${c.stagger} s later` : "")),
      el("td", { class: "text small" }, path(c.path)),
      el("td", { class: "text" }, el("svg:svg", { width: W, height: 22, viewBox: `0 0 ${W} 22`, "aria-hidden": "true" },
        el("svg:rect", { x: 0.5, y: 0.5, width: W - 1, height: 21, class: "axis", style: "opacity:.3" }), ...bar("o", 1), ...bar("s", 12))),
      el("td", { class: "num" }, shares.map((d) => d.ot).join(" : ")), el("td", { class: "num" }, shares.map((d) => d.st).join(" : ")),
      el("td", { class: "num" }, `${worst.toFixed(1)} points`), el("td", { class: "text" }, winner.inside ? "same winner" : "another winner"),
      el("td", {}, el("button", { "data-id": c.id, title: told(c), class: c.inside ? "q0" : "o1", onclick: () => open(c.id) }, c.inside ? "inside" : "outside"))));
  }
  $("pair").append(el("p", { class: "note" }, "Share of the link of each flow, upper bar Linux, lower bar simulator; limit 5 points. ",
    swatch(""), swatch("s"), "first flow", swatch("b"), swatch("s b"), "second flow"),
  el("div", { class: "wide" }, el("table", {}, el("thead", {}, el("tr", {}, ...["", "path", "", "Linux, %", "simulator, %", "difference", "", ""].map((t, i) =>
    el("th", { class: i > 2 && i < 6 ? "num small" : "small" }, t)))), body)));
}

function many() {
  const all = long("many");
  if (!all.length) $("many").append(el("p", { class: "note" }, "Not compared."));
  for (const c of all) {
    order.push(c.id);
    $("many").append(el("p", { class: "note" }, `${c.flows.length} flows of ${c.flows[0]} on ${path(c.path)}, buffer ${buffer(c)}, started ${c.stagger} s apart: sums; mean of the RTTs. `,
      el("button", { "data-id": c.id, onclick: () => open(c.id) }, "windows")), numbers(c));
  }
}

/** Short cells: a row per experiment, a column per kernel. */
function short() {
  const cells = D.cells.filter((c) => c.kernel !== LONG);
  if (!cells.length) { $("short").append(el("p", { class: "note" }, "Not compared.")); return; }
  const kernels = [...new Set(cells.map((c) => c.kernel))];
  for (const kind of Object.keys(KINDS)) {
    const all = cells.filter((c) => c.kind === kind);
    if (!all.length) continue;
    const body = el("tbody");
    for (const id of new Set(all.map((c) => c.id.split("@")[0]))) {
      const row = kernels.map((k) => all.find((c) => c.kernel === k && c.id.split("@")[0] === id));
      for (const c of row) if (c) order.push(c.id);
      body.append(el("tr", {}, el("th", { scope: "row" }, id), ...row.map((c) => el("td", {}, c && el("button", {
        "data-id": c.id, title: told(c), class: c.inside ? "q0" : "o1", onclick: () => open(c.id),
      }, c.inside ? "inside" : "outside")))));
    }
    $("short").append(el("h3", {}, KINDS[kind]),
      el("div", { class: "wide" }, el("table", {}, el("thead", {}, el("tr", {}, ...["", ...kernels].map((t) => el("th", { class: "small" }, t)))), body)));
  }
}

function numbers(c) {
  const rows = c.deviations.map((d) => el("tr", { class: d.inside ? "" : "out" },
    el("th", { scope: "row" }, metric[d.m].name + (d.f === null ? "" : `, flow ${d.f + 1} (${c.flows[d.f]})`)),
    ...["o", "s"].map((side, i) => el("td", { class: "num" }, withUnit(d[side + "t"], d.m) + (d.half ? ` ± ${d.half[i]}` : ""))),
    el("td", { class: "num" }, d.size), el("td", { class: "text" }, d.limit || "no limit"),
    el("td", { class: "num" }, d.limit ? (d.load === null ? "∞" : d.load.toFixed(2)) : ""),
    el("td", { class: "text" }, d.inside ? (d.limit ? "inside" : "") : el("strong", {}, "outside"))));
  return el("div", { class: "wide" }, el("table", {}, el("thead", {}, el("tr", {}, ...["metric", "Linux", "simulator", "difference", "limit", "of the limit", ""].map((t, i) =>
    el("th", { class: i && i !== 4 && i < 6 ? "num small" : "small" }, t)))), el("tbody", {}, rows)));
}

// ---- detail

const ALPHABET = "#$%'()*+,-./0123456789:;=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~!";
const DIGIT = Object.fromEntries([...ALPHABET].map((c, i) => [c, i]));

/** Windows of a curve at 0.1 s: {t: first moment in 0.1 s, w: values}. */
function decode(curve) {
  if (!curve) return null;
  const w = [];
  let last = 0, n = 0, place = 1;
  for (const c of curve.w) {
    const d = DIGIT[c];
    n += (d % 45) * place;
    place *= 45;
    if (d < 45) { last += n % 2 ? -(n + 1) / 2 : n / 2; w.push(last); n = 0; place = 1; }
  }
  return { t: curve.t, w };
}

function total(curves) {
  const given = curves.filter(Boolean);
  if (!given.length) return null;
  const t = Math.min(...given.map((c) => c.t)), end = Math.max(...given.map((c) => c.t + c.w.length));
  const w = new Array(end - t).fill(0);
  for (const c of given) c.w.forEach((v, i) => { w[c.t - t + i] += v; });
  return { t, w };
}

let current = null, shown = null;

function open(id) {
  const c = cells.get(id);
  if (!c) return;
  current = c;
  const from = [path(c.path), `buffer ${buffer(c)}`];
  if (c.loss) from.push(`random loss ${c.loss}`);
  if (c.stagger) from.push(`flows ${c.stagger} s apart`);
  if (c.repeats > 1) from.push(`${c.repeats} runs`);
  $("d-title").textContent = c.id;
  $("d-about").textContent = `${c.kind === "many" ? c.flows.length + " flows of " + c.flows[0] : c.flows.join(" and ")}; ${from.join("; ")}. ${c.inside ? "Inside every limit." : "Outside a limit."}`;
  const sides = c.curves.map(([o, s]) => [decode(o), decode(s)]);
  const series = sides.map(([o, s], i) => ({ name: c.flows.length > 1 ? `flow ${i + 1}, ${c.flows[i]}` : c.flows[i], o, s, first: c.first[i] }));
  if (c.kind === "many") series.unshift({ name: "sum of all", o: total(sides.map((x) => x[0])), s: total(sides.map((x) => x[1])), first: [null, null] });
  plot(c, series);
  const why = c.deviations.filter((d) => !d.inside).map((d) => el("p", {}, el("strong", {}, metric[d.m].name, ": "),
    d.causes && d.causes.length
      ? d.causes.map((i) => D.causes[i].cause + (D.causes[i].switch ? ` Switch: ${D.causes[i].switch}.` : "")).join(" ")
      : el("span", { class: "warn" }, "unexplained")));
  $("d-body").replaceChildren(
    ...(why.length ? [el("h3", {}, "Why it is outside"), ...why] : []),
    el("h3", {}, "Numbers"), numbers(c),
    ...(c.rmse.length ? [el("p", {}, `Normalised RMSE of the window after aligning on the first loss: ${c.rmse.map((r) => r.toFixed(4)).join(", ")}.`)] : []),
    ...(c.repeats > 1 ? [el("p", { class: "note" }, "The windows shown are those of the first run of each side" + (c.kind === "loss" ? ": their losses fall at different times." : "."))] : []),
    el("h3", {}, "Commands"), el("pre", {}, c.command), el("pre", {}, c.simulate));
  if (!$("detail").open) $("detail").showModal();
  $("detail").scrollTop = 0;
  if (location.hash !== "#cell=" + c.id) history.replaceState(null, "", "#cell=" + c.id);
}

/** Round steps for about n ticks up to a length. */
function step(length, n) {
  const raw = length / n, power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw);
}

function plot(c, series) {
  const W = 1120, H = 380, L = 58, R = 12, T = 10, B = 38, end = c.end;
  const on = series.map((s, i) => c.kind !== "many" || i === 0);
  let view = [0, end], align = false, drag = null;
  const svg = el("svg:svg", { viewBox: `0 0 ${W} ${H}`, tabindex: 0, role: "img", "aria-label": `Windows of ${c.id} over time, Linux and simulator. Plus and minus zoom, arrows move, 0 resets.` });
  const x = (t) => L + ((t - view[0]) / (view[1] - view[0])) * (W - L - R);
  const time = (px) => view[0] + ((px - L) / (W - L - R)) * (view[1] - view[0]);
  const shift = (s) => (align && s.first[0] !== null && s.first[1] !== null ? s.first[0] - s.first[1] : 0);
  const at = (curve, t) => (curve ? curve.w[Math.floor(t * 10 + 1e-6) - curve.t] : undefined);
  const span = (curve, by) => {
    const from = Math.max(0, Math.floor((view[0] - by) * 10) - curve.t), to = Math.min(curve.w.length - 1, Math.ceil((view[1] - by) * 10) - curve.t);
    return [from, to];
  };
  /** Per column of pixels the smallest and the largest value, so that no peak is lost. */
  function line(curve, by, y) {
    const [from, to] = span(curve, by), per = Math.max(1, Math.floor((to - from) / 1500));
    const d = [];
    for (let i = from; i <= to; i += per) {
      let lo = i, hi = i;
      for (let k = i; k < i + per && k <= to; k += 1) { if (curve.w[k] < curve.w[lo]) lo = k; if (curve.w[k] > curve.w[hi]) hi = k; }
      for (const k of lo === hi ? [lo] : [Math.min(lo, hi), Math.max(lo, hi)]) d.push(`${d.length ? "L" : "M"}${x((curve.t + k) / 10 + by).toFixed(1)} ${y(curve.w[k]).toFixed(1)}`);
    }
    return d.join("");
  }
  let y, bandBox, cross, label;
  function draw() {
    let top = 4;
    series.forEach((s, i) => {
      if (!on[i]) return;
      for (const [curve, by] of [[s.o, 0], [s.s, shift(s)]]) {
        if (!curve) continue;
        const [from, to] = span(curve, by);
        for (let k = from; k <= to; k += 1) top = Math.max(top, curve.w[k]);
      }
    });
    top *= 1.06;
    y = (v) => H - B - (v / top) * (H - B - T);
    const parts = [];
    const sx = step(view[1] - view[0], 10), sy = step(top, 6);
    for (let k = Math.ceil(view[0] / sx); k * sx <= view[1] + 1e-9; k += 1) {
      parts.push(el("svg:line", { x1: x(k * sx), x2: x(k * sx), y1: T, y2: H - B, class: "tick" }),
        el("svg:text", { x: x(k * sx), y: H - B + 16, "text-anchor": "middle" }, String(+(k * sx).toFixed(3))));
    }
    for (let k = 0; k * sy <= top; k += 1) {
      parts.push(el("svg:line", { x1: L, x2: W - R, y1: y(k * sy), y2: y(k * sy), class: "tick" }),
        el("svg:text", { x: L - 6, y: y(k * sy) + 4, "text-anchor": "end" }, (+(k * sy).toFixed(3)).toLocaleString("en")));
    }
    parts.push(el("svg:text", { x: (L + W - R) / 2, y: H - 5, "text-anchor": "middle" }, "time since the first flow's start, s"),
      el("svg:text", { x: 13, y: (T + H - B) / 2, "text-anchor": "middle", transform: `rotate(-90 13 ${(T + H - B) / 2})` }, "window, segments"));
    const clip = el("svg:clipPath", { id: "plot-area" }, el("svg:rect", { x: L, y: T, width: W - L - R, height: H - T - B }));
    const inside = el("svg:g", { "clip-path": "url" + "(#plot-area)" });
    const shade = (i) => (i % 2 ? " b" : "");
    series.forEach((s, i) => { if (on[i] && s.o) inside.append(el("svg:path", { d: line(s.o, 0, y), class: "linux" + (c.kind === "pair" ? shade(i) : "") })); });
    series.forEach((s, i) => { if (on[i] && s.s) inside.append(el("svg:path", { d: line(s.s, shift(s), y), class: "sim" + (c.kind === "pair" ? shade(i) : "") })); });
    bandBox = el("svg:rect", { y: T, height: H - T - B, class: "band", width: 0, x: L });
    cross = el("svg:line", { y1: T, y2: H - B, class: "cross", visibility: "hidden", x1: 0, x2: 0 });
    inside.append(bandBox, cross);
    svg.replaceChildren(clip, ...parts, inside, el("svg:path", { d: `M${L} ${T}V${H - B}H${W - R}`, class: "axis" }));
  }
  function zoom(factor, around) {
    const t = around === undefined ? (view[0] + view[1]) / 2 : around;
    const length = Math.min(end, Math.max(0.5, (view[1] - view[0]) * factor));
    const from = Math.max(0, Math.min(end - length, t - ((t - view[0]) / (view[1] - view[0])) * length));
    view = [from, from + length];
    draw();
  }
  const move = (part) => { const l = view[1] - view[0], from = Math.max(0, Math.min(end - l, view[0] + part * l)); view = [from, from + l]; draw(); };
  const reset = () => { view = [0, end]; draw(); };
  const pointer = (e) => { const box = svg.getBoundingClientRect(); return Math.max(L, Math.min(W - R, ((e.clientX - box.left) / box.width) * W)); };
  svg.addEventListener("pointerdown", (e) => { drag = pointer(e); svg.setPointerCapture(e.pointerId); });
  svg.addEventListener("pointermove", (e) => {
    const px = pointer(e), t = time(px);
    cross.setAttribute("x1", px); cross.setAttribute("x2", px); cross.setAttribute("visibility", "visible");
    if (drag !== null) { bandBox.setAttribute("x", Math.min(px, drag)); bandBox.setAttribute("width", Math.abs(px - drag)); }
    label.textContent = `${t.toFixed(1)} s: ` + series.map((s, i) => (on[i] ? `${series.length > 1 ? s.name + ": " : ""}Linux ${at(s.o, t) ?? "-"}, simulator ${at(s.s, t - shift(s)) ?? "-"}` : null)).filter(Boolean).join("; ");
  });
  svg.addEventListener("pointerup", (e) => {
    if (drag === null) return;
    const a = Math.min(time(drag), time(pointer(e))), b = Math.max(time(drag), time(pointer(e)));
    const wide = Math.abs(pointer(e) - drag) > 5;
    drag = null;
    if (wide) { view = [a, Math.max(b, a + 0.3)]; }
    draw();
  });
  svg.addEventListener("pointercancel", () => { drag = null; draw(); });
  svg.addEventListener("pointerleave", () => { if (drag === null) cross.setAttribute("visibility", "hidden"); });
  svg.addEventListener("wheel", (e) => { e.preventDefault(); zoom(e.deltaY > 0 ? 1.25 : 0.8, time(pointer(e))); }, { passive: false });
  svg.addEventListener("dblclick", reset);
  svg.addEventListener("keydown", (e) => {
    const action = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: reset, ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2) }[e.key];
    if (action) { e.preventDefault(); e.stopPropagation(); action(); }
  });
  label = el("span", { class: "note" }, "drag over a part or turn the wheel to zoom");
  const pairClass = c.kind === "pair";
  const flows = series.length < 2 ? [] : series.map((s, i) => el("button", {
    "aria-pressed": String(on[i]),
    onclick: (e) => { on[i] = !on[i]; e.currentTarget.setAttribute("aria-pressed", String(on[i])); draw(); },
  }, c.kind === "many" && i ? String(i) : s.name));
  const keys = pairClass
    ? [swatch(""), swatch("b"), "Linux", swatch("s"), swatch("s b"), "simulator"] : [swatch(""), "Linux", swatch("s"), "simulator"];
  $("d-tools").replaceChildren(
    el("span", {}, ...keys), el("button", { onclick: () => zoom(0.5), "aria-label": "zoom in" }, "+"), el("button", { onclick: () => zoom(2), "aria-label": "zoom out" }, "−"),
    el("button", { onclick: reset }, "reset"),
    ...(c.kind === "single" ? [el("button", { "aria-pressed": "false", title: "Move the simulator's curve so that both find their first loss at the same moment, as the RMSE does",
      onclick: (e) => { align = !align; e.currentTarget.setAttribute("aria-pressed", String(align)); draw(); } }, "align on the first loss")] : []),
    ...flows, label);
  $("d-plot").replaceChildren(svg);
  draw();
}

function neighbour(by) {
  const i = order.indexOf(current.id);
  if (i >= 0) open(order[(i + by + order.length) % order.length]);
}
$("d-prev").addEventListener("click", () => neighbour(-1));
$("d-next").addEventListener("click", () => neighbour(1));
$("d-close").addEventListener("click", () => $("detail").close());
$("detail").addEventListener("keydown", (e) => {
  const by = { PageUp: -1, PageDown: 1 }[e.key];
  if (by) { e.preventDefault(); neighbour(by); }
});
$("detail").addEventListener("click", (e) => { if (e.target === $("detail")) $("detail").close(); });
$("detail").addEventListener("close", () => {
  history.replaceState(null, "", location.pathname + location.search);
  const button = current && document.querySelector(`button[data-id="${CSS.escape(current.id)}"]`);
  if (button) button.focus();
});

function fromHash() {
  const m = /^#cell=(.+)$/.exec(location.hash);
  if (m) open(decodeURIComponent(m[1]));
}

summary();
choice();
grid();
losses();
pairs();
many();
short();
window.addEventListener("hashchange", fromHash);
fromHash();
})();
