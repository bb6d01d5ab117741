// What may not change: features locked by their buttons, time locked by dragging or by the form, ranges by the dialog.

import { $, breakable, el, icon, speak } from "./dom.js";
import { stepsToTime, timeUnit, toSteps } from "./picture.js";
import { clearLimits, known, set, state } from "./state.js";

let changed = () => {};
let limited = null; // the feature whose dialog is open

export function beginLocks(onChange) {
  changed = onChange;
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
    changed();
  });
  $("#limits").addEventListener("close", readDialog);
  for (const button of document.querySelectorAll("#limits [data-close]")) {
    button.addEventListener("click", () => $("#limits").close(button.dataset.close));
  }
  $("#limits form").addEventListener("submit", checkDialog);
}

export function lockTime(start, stop) {
  if (stop <= start) return;
  // Windows that touch become one.
  const windows = [...state.frozen, [start, stop]].sort((a, b) => a[0] - b[0]);
  const merged = [];
  for (const [from, to] of windows) {
    const last = merged.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  set({ frozen: merged, shown: 0 });
  speak(`Locked ${inWords([start, stop])}.`);
  changed();
}

function inWords([start, stop]) {
  return known.dataset.sampling_rate
    ? `${stepsToTime(start).toFixed(2)} to ${stepsToTime(stop - 1).toFixed(2)} s`
    : `steps ${start} to ${stop - 1}`;
}

export function drawFeatures(features, answer) {
  const touched = new Set((answer?.changes ?? []).map((c) => c.feature));
  const place = $("#features");
  const focused = document.activeElement?.dataset?.feature;
  const wasMore = document.activeElement?.classList.contains("more");
  place.replaceChildren(...features.map((f) => row(f, touched)));
  if (focused !== undefined) [...place.querySelectorAll(wasMore ? ".more" : ".feature")].find((b) => b.dataset.feature === focused)?.focus();
}

function row(f, touched) {
  const name = known.dataset.feature_names[f];
  const fixed = !known.dataset.mutable[f];
  const locked = fixed || state.immutable.includes(name);
  const unit = known.dataset.units?.[f];
  const button = el("button", {
    type: "button", class: `feature${touched.has(name) ? " changed" : ""}`, "aria-pressed": String(locked), disabled: fixed, "data-feature": name,
    title: fixed ? `${name} may never change: the data say so` : `${locked ? "Unlock" : "Lock"} ${name}`,
    onclick: () => toggle(name),
  }, icon(locked ? "locked" : "open"), el("span", {}, ...breakable(name), unit ? el("small", {}, ` ${unit}`) : null));
  const set = name in state.ranges || name in state.direction;
  const more = el("button", {
    type: "button", class: `more${set ? " set" : ""}`, disabled: locked, "data-feature": name,
    "aria-label": `Limits of ${name}${set ? ", set" : ""}`, title: `Limits of ${name}`, onclick: () => openDialog(f),
  }, icon("limits"));
  return el("div", { class: "feature-row" }, button, more);
}

function toggle(name) {
  const locked = state.immutable.includes(name);
  set({ immutable: locked ? state.immutable.filter((n) => n !== name) : [...state.immutable, name], shown: 0 });
  speak(`${name} ${locked ? "unlocked" : "locked"}.`);
  changed();
}

export function drawLocked() {
  const chips = [];
  const chip = (words, drop) => chips.push(el("li", {}, words,
    el("button", { type: "button", "aria-label": `Release ${words}`, onclick: () => { set({ ...drop(), shown: 0 }); changed(); } }, "×")));
  for (const name of state.immutable) chip(name, () => ({ immutable: state.immutable.filter((n) => n !== name) }));
  state.frozen.forEach((window, i) => chip(inWords(window), () => ({ frozen: state.frozen.filter((_, k) => k !== i) })));
  for (const name of new Set([...Object.keys(state.ranges), ...Object.keys(state.direction)])) {
    chip(limitInWords(name), () => without(name));
  }
  if (chips.length > 1) {
    chips.push(el("li", { class: "all" }, el("button", { type: "button", class: "plain", onclick: () => { clearLimits(); changed(); } }, "Release all")));
  }
  $("#locked").replaceChildren(...chips);
  for (const unit of document.querySelectorAll("#lock-time .unit")) unit.textContent = timeUnit();
}

function limitInWords(name) {
  const unit = known.dataset.units?.[known.dataset.feature_names.indexOf(name)] ?? "";
  const [low, high] = state.ranges[name] ?? [null, null];
  const parts = [];
  if (low !== null) parts.push(`at least ${low} ${unit}`.trim());
  if (high !== null) parts.push(`at most ${high} ${unit}`.trim());
  if (state.direction[name]) parts.push(`${state.direction[name]} only`);
  return `${name}: ${parts.join(", ")}`;
}

function without(name) {
  const [ranges, direction] = [{ ...state.ranges }, { ...state.direction }];
  delete ranges[name];
  delete direction[name];
  return { ranges, direction };
}

function openDialog(f) {
  limited = known.dataset.feature_names[f];
  const dialog = $("#limits");
  const [low, high] = state.ranges[limited] ?? [null, null];
  const form = $("form", dialog);
  $("#title-limits").textContent = `Limits of ${limited}`;
  const unit = known.dataset.units?.[f] ?? "";
  $(".hint", dialog).textContent = `What an answer may do with it. In the data it goes from ${known.dataset.low[f].toPrecision(3)} to ${known.dataset.high[f].toPrecision(3)} ${unit}`.trim() + ".";
  $(".unit", dialog).textContent = unit;
  form.low.value = low ?? "";
  form.high.value = high ?? "";
  form.direction.value = state.direction[limited] ?? "";
  $(".problem", dialog).textContent = "";
  dialog.returnValue = "cancel";
  dialog.showModal();
}

function checkDialog(event) {
  const { low, high } = event.target;
  if (!low.value || !high.value || low.valueAsNumber <= high.valueAsNumber) return;
  event.preventDefault();
  $("#limits .problem").textContent = "The smallest value must not be above the largest.";
}

function readDialog() {
  const dialog = $("#limits");
  const form = $("form", dialog);
  if (dialog.returnValue === "clear") set({ ...without(limited), shown: 0 });
  else if (dialog.returnValue === "set") {
    const next = without(limited);
    const ends = [form.low, form.high].map((input) => (input.value === "" ? null : input.valueAsNumber));
    if (ends.some((end) => end !== null)) next.ranges[limited] = ends;
    if (form.direction.value) next.direction[limited] = form.direction.value;
    set({ ...next, shown: 0 });
  } else return;
  changed();
}

