// Constraints: features locked by buttons, time locked by dragging or by the form, ranges and directions set in a dialog.

import { $, announce, breakable, el, icon } from "./dom.js";
import { stepsToTime, timeUnit, toSteps } from "./figure.js";
import { clearLimits, known, limitOf, set, state, withLimit, withoutLimit } from "./state.js";

let onChange = () => {};
let edited = null; // the feature whose dialog is open

export function initLocks(listener) {
  onChange = listener;
  $("#lock-time").addEventListener("submit", (event) => {
    event.preventDefault();
    const form = event.target;
    const [from, to] = [form.from.valueAsNumber, form.to.valueAsNumber];
    lockTime(toSteps(Math.min(from, to)), toSteps(Math.max(from, to)) + 1);
    form.reset();
  });
  $("#drag").addEventListener("click", (event) => {
    const on = event.target.getAttribute("aria-pressed") !== "true";
    event.target.setAttribute("aria-pressed", String(on));
    onChange();
  });
  $("#limits").addEventListener("close", readDialog);
  for (const button of document.querySelectorAll("#limits [data-close]")) {
    button.addEventListener("click", () => $("#limits").close(button.dataset.close));
  }
  $("#limits form").addEventListener("submit", checkDialog);
}

export function lockTime(start, stop) {
  if (stop <= start) return;
  // Adjacent windows are merged.
  const windows = [...state.frozen, [start, stop]].sort((a, b) => a[0] - b[0]);
  const merged = [];
  for (const [from, to] of windows) {
    const last = merged.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  set({ frozen: merged, shown: 0 });
  announce(`Locked ${windowText([start, stop])}.`);
  onChange();
}

function windowText([start, stop]) {
  return known.dataset.sampling_rate
    ? `${stepsToTime(start).toFixed(2)} to ${stepsToTime(stop - 1).toFixed(2)} s`
    : `steps ${start} to ${stop - 1}`;
}

export function drawFeatures(features, answer) {
  const touched = new Set((answer?.changes ?? []).map((c) => c.feature));
  const container = $("#features");
  const focused = document.activeElement?.dataset?.feature;
  const wasMore = document.activeElement?.classList.contains("more");
  container.replaceChildren(...features.map((f) => row(f, touched)));
  if (focused !== undefined) [...container.querySelectorAll(wasMore ? ".more" : ".feature")].find((b) => b.dataset.feature === focused)?.focus();
}

function row(f, touched) {
  const name = known.dataset.feature_names[f];
  const fixed = !known.dataset.mutable[f];
  const locked = fixed || state.immutable.includes(name);
  const unit = known.dataset.units?.[f];
  const button = el("button", {
    type: "button", class: `feature${touched.has(name) ? " changed" : ""}`, "aria-pressed": String(locked), disabled: fixed, "data-feature": name,
    title: fixed ? `${name} is immutable in this data set` : `${locked ? "Unlock" : "Lock"} ${name}`,
    onclick: () => toggle(name),
  }, icon(locked ? "locked" : "open"), el("span", {}, ...breakable(name), unit ? el("small", {}, ` ${unit}`) : null));
  const set = limitOf(state.ranges, name) !== null || limitOf(state.direction, name) !== null;
  const more = el("button", {
    type: "button", class: `more${set ? " set" : ""}`, disabled: locked, "data-feature": name,
    "aria-label": `Limits of ${name}${set ? ", set" : ""}`, title: `Limits of ${name}`, onclick: () => openDialog(f),
  }, icon("limits"));
  return el("div", { class: "feature-row" }, button, more);
}

function toggle(name) {
  const locked = state.immutable.includes(name);
  set({ immutable: locked ? state.immutable.filter((n) => n !== name) : [...state.immutable, name], shown: 0 });
  announce(`${name} ${locked ? "unlocked" : "locked"}.`);
  onChange();
}

export function drawLocked() {
  const chips = [];
  const chip = (text, release) => chips.push(el("li", {}, text,
    el("button", { type: "button", "aria-label": `Release ${text}`, onclick: () => { set({ ...release(), shown: 0 }); onChange(); } }, "×")));
  for (const name of state.immutable) chip(name, () => ({ immutable: state.immutable.filter((n) => n !== name) }));
  state.frozen.forEach((window, i) => chip(windowText(window), () => ({ frozen: state.frozen.filter((_, k) => k !== i) })));
  for (const name of new Set([...Object.keys(state.ranges), ...Object.keys(state.direction)])) {
    chip(limitText(name), () => without(name));
  }
  if (chips.length > 1) {
    chips.push(el("li", { class: "all" }, el("button", { type: "button", class: "plain", onclick: () => { clearLimits(); onChange(); } }, "Release all")));
  }
  $("#locked").replaceChildren(...chips);
  for (const unit of document.querySelectorAll("#lock-time .unit")) unit.textContent = timeUnit();
}

function limitText(name) {
  const unit = known.dataset.units?.[known.dataset.feature_names.indexOf(name)] ?? "";
  const [low, high] = limitOf(state.ranges, name) ?? [null, null];
  const direction = limitOf(state.direction, name);
  const parts = [];
  if (low !== null) parts.push(`at least ${low} ${unit}`.trim());
  if (high !== null) parts.push(`at most ${high} ${unit}`.trim());
  if (direction) parts.push(`${direction} only`);
  return `${name}: ${parts.join(", ")}`;
}

const without = (name) => ({ ranges: withoutLimit(state.ranges, name), direction: withoutLimit(state.direction, name) });

function openDialog(f) {
  edited = known.dataset.feature_names[f];
  const dialog = $("#limits");
  const [low, high] = limitOf(state.ranges, edited) ?? [null, null];
  const form = $("form", dialog);
  $("#title-limits").textContent = `Limits of ${edited}`;
  const unit = known.dataset.units?.[f] ?? "";
  $(".hint", dialog).textContent = `Allowed values of the counterfactual. The training data range from ${known.dataset.low[f].toPrecision(3)} to ${known.dataset.high[f].toPrecision(3)} ${unit}`.trim() + ".";
  $(".unit", dialog).textContent = unit;
  form.low.value = low ?? "";
  form.high.value = high ?? "";
  form.direction.value = limitOf(state.direction, edited) ?? "";
  $(".problem", dialog).textContent = "";
  dialog.returnValue = "cancel";
  dialog.showModal();
}

function checkDialog(event) {
  const { low, high } = event.target;
  if (!low.value || !high.value || low.valueAsNumber <= high.valueAsNumber) return;
  event.preventDefault();
  $("#limits .problem").textContent = "The lower limit must not be above the upper limit.";
}

function readDialog() {
  const dialog = $("#limits");
  const form = $("form", dialog);
  if (dialog.returnValue === "clear") set({ ...without(edited), shown: 0 });
  else if (dialog.returnValue === "set") {
    const next = without(edited);
    const ends = [form.low, form.high].map((input) => (input.value === "" ? null : input.valueAsNumber));
    if (ends.some((end) => end !== null)) next.ranges = withLimit(next.ranges, edited, ends);
    if (form.direction.value) next.direction = withLimit(next.direction, edited, form.direction.value);
    set({ ...next, shown: 0 });
  } else return;
  onChange();
}

