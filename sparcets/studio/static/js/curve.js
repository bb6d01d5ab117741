// How much may change against who believes it. The slider stands below the curve, on the same scale: it starts at the
// smallest answer that other models agree with, and the curve shows where they stop to agree.

import { post } from "./api.js";
import { $, el, percent, svg } from "./dom.js";
import { methodName } from "./setup.js";
import { act, explainRequest, known, question, set, state } from "./state.js";

const SHARES = [0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1];
const LABELLED = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
const SAME = 0.06; // relative difference of shares below which one stop is enough
const PAD = 8; // half of the slider's thumb
const HEIGHT = 104;
const [TOP, BASE] = [8, HEIGHT - 6];
const HALF = 0.5; // more than this share of a kind of models is its majority
const NARROW = 34; // pixels between two stops below which only some have a label
const [AHEAD, BETWEEN] = [400, 30]; // milliseconds of rest before the answers at the other stops are requested, and between them

let asked = null; // the question that the following belongs to
let curve = null;
let needed = null; // share of the answer without a cap
let visited = new Map(); // answers by cap
let looked = new Set(); // caps whose answers the studio has, or was asked for
let stops = [];
let dragging = false;
let timer = null;
let running = null;
let actions = 0; // of the user
let onChange = () => {};

export function initCurve(listener) {
  onChange = listener;
  const slider = $("#sparsity");
  slider.addEventListener("input", () => {
    const cap = stops[slider.valueAsNumber].cap;
    if (cap === state.sparsity) return;
    (dragging ? set : act)({ sparsity: cap, shown: 0 }); // a whole drag is one action
    dragging = true;
    drawText(null);
    onChange();
  });
  slider.addEventListener("change", () => { dragging = false; });
  $("#start").addEventListener("click", () => { act({ sparsity: null, shown: 0 }); onChange(); });
  new ResizeObserver(() => drawPicture()).observe($("#curve"));
}

// Support by the kind of other models that is convinced least; NaN for methods without other models.
const least = (answer) => Math.min(...Object.values(answer.support).map((share) => share ?? NaN), Object.keys(answer.support).length ? Infinity : NaN);

// Draws the slider and the curve for the answer that is shown, or for none.
export function drawCurve(answer) {
  if (asked !== question()) {
    [asked, curve, needed, visited, looked] = [question(), null, null, new Map(), new Set()];
    running?.abort();
  }
  if (answer) {
    visited.set(state.sparsity, answer);
    looked.add(state.sparsity);
    if (state.sparsity === null && answer.status !== "not_found") needed = answer.share_changed;
  }
  buildStops();
  drawText(answer);
  drawPicture();
}

// The position of the slider for a cap.
export const stopOf = (cap) => stops.findIndex((stop) => stop.cap === cap);

const tick = (share) => `${Number((100 * share).toPrecision(2))} %`;

function buildStops() {
  const own = needed > 0 ? needed : 1;
  const near = (share) => Math.abs(Math.log(share / own)) < SAME;
  stops = [...SHARES.filter((share) => !near(share)).map((share) => ({ cap: share, share })), { cap: null, share: own }];
  if (state.sparsity !== null && !stops.some((stop) => stop.cap === state.sparsity)) stops.push({ cap: state.sparsity, share: state.sparsity });
  stops.sort((a, b) => a.share - b.share);
  const slider = $("#sparsity");
  slider.max = stops.length - 1;
  slider.value = stopOf(state.sparsity);
  const room = ($("#ticks").clientWidth - 2 * PAD) / (stops.length - 1) || Infinity; // between two stops
  const few = room < NARROW ? [0.01, 0.1, 1] : LABELLED;
  const shown = stops.map((stop, i) => ({ ...stop, i })).filter(({ cap, share }) => cap === null || few.includes(share));
  const marked = stopOf(null);
  $("#ticks").replaceChildren(...shown.filter(({ cap, i }) => cap === null || Math.abs(i - marked) > 1).map(({ cap, share, i }) => el("span", {
    class: cap === null ? "own" : null, style: `left: calc(${PAD}px + (100% - ${2 * PAD}px) * ${i / (stops.length - 1)})`,
  }, cap === null && needed === null ? "all" : tick(share))));
}

function drawText(answer) {
  const cap = stops[$("#sparsity").valueAsNumber]?.cap ?? null;
  let text = cap === null ? "no limit" : `at most ${percent(cap)}`;
  if (answer && answer.status !== "unchanged") {
    const changed = percent(answer.share_changed);
    if (state.strokes.length && cap === null) text = `${changed} changed`;
    else if (cap === null && answer.valid && least(answer) > HALF) text = `the smallest found that all kinds of other models agree with: ${changed}`;
    else text += `: ${changed} changed`;
    if (!answer.valid) text += `, which does not reach ${answer.target}`;
  }
  $("#sparsity-text").textContent = text;
  $("#sparsity").setAttribute("aria-valuetext", text);
  $("#start").classList.toggle("unseen", cap === null); // its place is kept
}

// Position of a share on the scale of the slider, 0 to 1; between two stops by its logarithm.
function place(share) {
  const next = stops.findIndex((stop) => stop.share >= share);
  if (next === 0) return 0;
  if (next < 0) return 1;
  const [low, high] = [stops[next - 1].share, stops[next].share];
  return (next - 1 + Math.log(share / low) / Math.log(high / low)) / (stops.length - 1);
}

function drawPicture() {
  const box = $("#curve");
  const width = box.clientWidth;
  if (!width || !stops.length) return;
  const x = (share) => PAD + (width - 2 * PAD) * place(share);
  const y = (support) => BASE - (BASE - TOP) * support;
  const parts = [];
  if (curve?.share.length) parts.push(...zones(x, width), ...line(x, y, width));
  for (const [cap, answer] of visited) if (answer.share_changed > 0) parts.push(...mark(answer, cap === state.sparsity, x, y));
  box.replaceChildren(svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" }, ...parts));
  box.setAttribute("aria-label", `Belief against the share of changed values. ${$("#curve-text").textContent}`);
  drawCaption();
}

// Where the model does not predict the target, where it does alone, and where the other models agree.
function zones(x, width) {
  const flips = curve.flips_at === null ? width - PAD : x(curve.flips_at);
  const agree = curve.least_believed === null ? width - PAD : Math.max(flips, x(curve.least_believed));
  const zone = (from, to, name, text) => (to - from < 1 ? [] : [
    svg("rect", { x: from, y: TOP, width: to - from, height: BASE - TOP, class: `zone ${name}` }),
    to - from > 7 * text.length ? svg("text", { x: from + 5, y: BASE - 5, class: "zone-text" }, text) : null,
  ]);
  return [
    ...zone(PAD, flips, "grey", "not reached"), ...zone(flips, agree, "amber", "the model alone"),
    ...zone(agree, width - PAD, "green", "other models agree"),
  ];
}

// All points that were measured, and the most that can be had with as many changes.
function line(x, y, width) {
  const parts = [svg("line", { x1: PAD, x2: width - PAD, y1: y(HALF), y2: y(HALF), class: "half" })];
  let best = null;
  let path = "";
  curve.share.forEach((share, i) => {
    parts.push(svg("circle", { cx: x(share), cy: y(curve.support[i]), r: 1.8, class: curve.valid[i] ? "point" : "point invalid" }));
    if (!curve.valid[i] || (best !== null && curve.support[i] <= best)) return;
    path += best === null ? `M${x(share)} ${y(curve.support[i])}` : `H${x(share)}V${y(curve.support[i])}`;
    best = curve.support[i];
  });
  if (path) parts.push(svg("path", { d: `${path}H${width - PAD}`, class: "best" }));
  return parts;
}

function mark(answer, current, x, y) {
  const support = least(answer);
  const at = { x: x(answer.share_changed), y: y(Number.isFinite(support) ? support : HALF) };
  const name = `mark ${answer.verdict.tone}${current ? " current" : ""}`;
  return [
    svg("circle", { cx: at.x, cy: at.y, r: current ? 9 : 5.5, class: name }),
    current ? svg("text", { x: at.x, y: at.y + 4, class: `mark-text ${answer.verdict.tone}` }, answer.verdict.symbol) : null,
  ];
}

function drawCaption() {
  $("#curve-text").textContent = caption();
}

function caption() {
  if (state.strokes.length) return "For a curve that was changed by hand, smaller changes are not measured.";
  if (!curve) return running ? "Measuring who believes smaller changes…" : "";
  if (!curve.share.length) return `${methodName(known.explainer.method)} asks no other models: nothing tells an explanation from a trick.`;
  const alone = curve.flips_at === null ? "With none of the measured changes does the model predict the target;"
    : `The smallest measured change with which the model predicts the target: ${percent(curve.flips_at)};`;
  const all = curve.least_believed === null ? "with none do other models of every kind agree, too."
    : `with which other models of every kind agree, too: ${percent(curve.least_believed)}.`;
  const fragile = curve.fragile ? " It flips long before they do: it reacts to changes that mean nothing to them." : "";
  return `${alone} ${all}${fragile} The line is the kind of models that is convinced least.`;
}

// Requests the curve of the question, after its answer; then the answers at the other stops, while nothing else is asked.
export async function loadCurve() {
  clearTimeout(timer);
  if (!state.strokes.length && !curve && asked === question()) {
    running?.abort();
    const own = new AbortController();
    const started = performance.now();
    running = own;
    drawCaption();
    try {
      const found = await post("/curves", { ...explainRequest(), sparsity: null, answers: 1 }, own.signal);
      if (asked !== question() || own !== running) return;
      curve = found;
      needed ??= found.needed > 0 ? found.needed : null;
    } catch {
      return; // aborted, or the answer has said what is wrong
    } finally {
      if (own === running) running = null;
    }
    buildStops();
    drawPicture();
    performance.measure("curve", { start: started });
    document.body.dataset.curve = String(Number(document.body.dataset.curve ?? 0) + 1);
  }
  timer = setTimeout(lookAhead, AHEAD);
}

// Asks for the answers at the other stops, the nearest first: the studio keeps them, and the slider then moves at once.
async function lookAhead() {
  const here = stopOf(state.sparsity);
  const order = [...stops.slice(0, here).reverse(), ...stops.slice(here + 1)];
  const next = order.find(({ cap }) => !looked.has(cap));
  if (!next || state.answers > 1 || document.hidden) return;
  looked.add(next.cap);
  const mine = actions;
  await post("/explanations", { ...explainRequest(), sparsity: next.cap }).catch(() => null);
  if (mine === actions) timer = setTimeout(lookAhead, BETWEEN);
}

// Called when the user does something: what is not urgent waits.
export function hold() {
  actions += 1;
  clearTimeout(timer);
}
