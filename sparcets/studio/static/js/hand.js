// Curves changed by hand: pull a curve up or down with the pointer, or with the form, and watch what the model says.

import { $, announce, el, percent, short, svg } from "./dom.js";
import { featureOptions, geometry, isLocked, timeText, toSteps, unitOf } from "./figure.js";
import { holdScales } from "./scales.js";
import { act, known, NOT_DRAWN, set, state } from "./state.js";

const WIDTH = 0.12; // of the series: how far a pull reaches to both sides
let onChange = () => {};
let listed = null; // the data set whose features the form lists
let pull = null; // the stroke that is being drawn

export function initHand(listener) {
  onChange = listener;
  $("#draw").addEventListener("click", () => { toggle(!drawing()); });
  $("#undraw").addEventListener("click", () => { act({ ...NOT_DRAWN, shown: 0 }); onChange(); });
  $("#find-rest").addEventListener("click", () => {
    act({ findRest: true, sparsity: null, shown: 0 });
    toggle(false);
    announce("What was drawn stays; the rest is searched for.");
    onChange();
  });
  $("#hand-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const { feature, at, by, width } = event.target;
    draw({ feature: feature.value, at: toSteps(at.valueAsNumber), by: by.valueAsNumber, width: reach(width.valueAsNumber) }, act);
  });
  const layer = $("#hand");
  layer.addEventListener("pointerdown", begin);
  layer.addEventListener("pointermove", move);
  layer.addEventListener("pointerup", end);
  layer.addEventListener("pointercancel", end);
}

const drawing = () => $("#draw").getAttribute("aria-pressed") === "true";
const reach = (share) => Math.max(1, Math.round((share / 100) * known.series.length));

function toggle(on) {
  $("#draw").setAttribute("aria-pressed", String(on));
  drawHand(null);
  if (on) announce("Drag a curve up or down, or use the form below the figure.");
}

function draw(stroke, change) {
  change({ strokes: [...(change === set ? state.strokes.slice(0, -1) : state.strokes), stroke], findRest: false, shown: 0 });
  onChange();
}

// What the model says of what was drawn, beside the button.
export function drawHand(answer) {
  const on = drawing();
  $("#hand").hidden = !on;
  $("#hand-form").hidden = !on;
  $("#hint").textContent = hint(on);
  if (listed !== known.dataset.id) {
    listed = known.dataset.id;
    $("#hand-form [name=feature]").replaceChildren(...featureOptions());
    $("#hand-form [name=width]").value = String(100 * WIDTH);
  }
  if (on && geometry) {
    const layer = $("#hand");
    Object.assign(layer.style, { left: `${geometry.left}px`, top: `${geometry.top}px`, width: `${geometry.width}px`, height: `${geometry.height}px` });
  }
  $("#hand-actions").hidden = !state.strokes.length;
  $("#find-rest").hidden = state.findRest;
  if (!state.strokes.length) $("#hand-text").textContent = "";
  else if (answer) {
    const probabilities = known.dataset.class_names.map((name, k) => `${name} ${percent(answer.probability_after[k])}`);
    const last = state.strokes.at(-1);
    const what = `${state.strokes.length > 1 ? `${state.strokes.length} pulls; the last: ` : ""}${last.feature} at ${timeText(last.at)} by ${short(last.by)}${unitOf(known.dataset.feature_names.indexOf(last.feature))}`;
    $("#hand-text").replaceChildren(`${what}. The model says `, el("strong", {}, probabilities.join(", ")), state.findRest ? ", with the rest." : ".");
  }
}

function hint(on) {
  if (on) return "Drag a curve up or down and watch what the model says.";
  return matchMedia("(pointer: coarse)").matches ? "Tap a feature to lock it. Lock a time window below."
    : "Click a feature to lock it. Drag across the figure to lock a time window, of all features or of one.";
}

const bump = (away, width) => (Math.abs(away) <= width ? 0.5 * (1 + Math.cos((Math.PI * away) / (width + 1))) : 0);

function begin(event) {
  const f = geometry.features[Math.floor(event.offsetY / geometry.band)];
  if (f === undefined) return;
  const name = known.dataset.feature_names[f];
  const at = geometry.step(event.offsetX);
  if (isLocked(f) || known.series.values[at][f] === null) {
    announce(`${name} cannot be changed there.`);
    return;
  }
  event.preventDefault();
  $("#hand").setPointerCapture(event.pointerId);
  holdScales(true);
  pull = { f, place: geometry, y: event.clientY, before: state.strokes, stroke: { feature: name, at, width: reach($("#hand-form [name=width]").valueAsNumber), by: 0 }, started: false };
}

function move(event) {
  if (!pull) return;
  const by = pull.place.value(pull.f, event.clientY) - pull.place.value(pull.f, pull.y); // even if the page has moved
  pull.stroke = { ...pull.stroke, by: Number(by.toPrecision(4)) };
  drawPull();
  draw(pull.stroke, pull.started ? set : act); // one pull is one action
  pull.started = true;
}

function end() {
  if (!pull) return;
  pull = null;
  holdScales(false);
  $("#hand").replaceChildren();
  onChange(); // now with the scale that it needs
}

// The curve follows the pointer at once; the rest of the page as soon as the model has answered.
function drawPull() {
  const { f, stroke, place } = pull;
  const points = [];
  for (let t = Math.max(0, stroke.at - stroke.width - 1); t <= Math.min(known.series.length - 1, stroke.at + stroke.width + 1); t++) {
    if (known.series.values[t][f] === null) continue;
    const before = pull.before.filter((s) => s.feature === stroke.feature).reduce((sum, s) => sum + s.by * bump(t - s.at, s.width), known.series.values[t][f]);
    points.push(`${place.x(t)},${place.y(f, before + stroke.by * bump(t - stroke.at, stroke.width))}`);
  }
  $("#hand").replaceChildren(svg("svg", { width: place.width, height: place.height }, svg("polyline", { points: points.join(" ") })));
}
