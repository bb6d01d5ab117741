// Constraints: features locked by buttons, time locked by dragging or by the form, ranges and directions set in a dialog.

import { $, announce, breakable, el, icon } from "./dom.js";
import { featureOptions, geometry, seconds, timeUnit, toSteps, unitOf } from "./figure.js";
import { act, known, NO_LIMITS, own, state, withEntry, withoutEntry } from "./state.js";

let onChange = () => {};
let edited = null; // the feature whose dialog is open
let listed = null; // the data set whose features the form lists

export function initLocks(listener) {
  onChange = listener;
  $("#lock-time").addEventListener("submit", (event) => {
    event.preventDefault();
    const form = event.target;
    const [from, to] = [form.from.valueAsNumber, form.to.valueAsNumber];
    lockTime(toSteps(Math.min(from, to)), toSteps(Math.max(from, to)) + 1, form.feature.value || null);
    form.from.value = form.to.value = "";
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
  $("#window-menu").addEventListener("keydown", (event) => { if (event.key === "Escape") closeMenu(); });
}

function change(changes, message) {
  act({ ...changes, shown: 0 });
  if (message) announce(message);
  onChange();
}

// Asks what of a window that was dragged over the figure is to be locked.
export function askWindow(start, stop, feature) {
  const menu = $("#window-menu");
  const name = feature === null ? null : known.dataset.feature_names[feature];
  const entry = (text, of) => el("button", { type: "button", onclick: () => { closeMenu(); lockTime(start, stop, of); } }, text);
  menu.replaceChildren(
    el("span", { class: "about" }, windowText([start, stop])),
    entry("Lock all features", null),
    name !== null && known.dataset.mutable[feature] ? entry(`Lock ${name} only`, name) : null,
    el("button", { type: "button", class: "plain", onclick: closeMenu }, "Cancel"));
  menu.hidden = false;
  const left = geometry.left + geometry.x(start);
  menu.style.left = `${Math.max(0, Math.min(left, $("#figure-box").clientWidth - menu.offsetWidth))}px`;
  menu.style.top = `${geometry.top + Math.max(0, geometry.features.indexOf(feature)) * geometry.band}px`;
  $("button", menu).focus();
}

function closeMenu() {
  $("#window-menu").hidden = true;
}

// Locks a window of all features, or of one by its name.
export function lockTime(start, stop, name = null) {
  if (stop <= start) return;
  const before = name === null ? state.frozen : (own(state.frozenFeatures, name) ?? []);
  // Adjacent windows are merged.
  const merged = [];
  for (const [from, to] of [...before, [start, stop]].sort((a, b) => a[0] - b[0])) {
    const last = merged.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  change(name === null ? { frozen: merged } : { frozenFeatures: withEntry(state.frozenFeatures, name, merged) },
    `Locked ${name === null ? "" : `${name}, `}${windowText([start, stop])}.`);
}

function windowText([start, stop]) {
  return known.dataset.sampling_rate
    ? `${seconds(start)} to ${seconds(stop - 1)} s`
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
  const limited = own(state.ranges, name) !== undefined || own(state.direction, name) !== undefined;
  const more = el("button", {
    type: "button", class: `more${limited ? " set" : ""}`, disabled: locked, "data-feature": name,
    "aria-label": `Limits of ${name}${limited ? ", set" : ""}`, title: `Limits of ${name}`, onclick: () => openDialog(f),
  }, icon("limits"));
  return el("div", { class: "feature-row" }, button, more);
}

function toggle(name) {
  const locked = state.immutable.includes(name);
  change({ immutable: locked ? state.immutable.filter((n) => n !== name) : [...state.immutable, name] }, `${name} ${locked ? "unlocked" : "locked"}.`);
}

export function drawLocked() {
  const chips = [];
  const chip = (text, released) => chips.push(el("li", {}, text,
    el("button", { type: "button", "aria-label": `Release ${text}`, onclick: () => change(released()) }, "×")));
  for (const name of state.immutable) chip(name, () => ({ immutable: state.immutable.filter((n) => n !== name) }));
  state.frozen.forEach((window, i) => chip(windowText(window), () => ({ frozen: state.frozen.filter((_, k) => k !== i) })));
  for (const [name, windows] of Object.entries(state.frozenFeatures)) {
    windows.forEach((window, i) => chip(`${name}, ${windowText(window)}`, () => {
      const rest = windows.filter((_, k) => k !== i);
      return { frozenFeatures: rest.length ? withEntry(state.frozenFeatures, name, rest) : withoutEntry(state.frozenFeatures, name) };
    }));
  }
  for (const name of new Set([...Object.keys(state.ranges), ...Object.keys(state.direction)])) {
    chip(limitText(name), () => without(name));
  }
  if (chips.length > 1) {
    chips.push(el("li", { class: "all" }, el("button", { type: "button", class: "plain", onclick: () => change(NO_LIMITS) }, "Release all")));
  }
  $("#locked").replaceChildren(...chips);
  if (listed !== known.dataset.id) {
    listed = known.dataset.id;
    $("#lock-time [name=feature]").replaceChildren(...featureOptions([["", "all features"]]));
  }
  for (const unit of document.querySelectorAll("#lock-time .unit, #hand-form .unit")) unit.textContent = timeUnit();
}

function limitText(name) {
  const unit = unitOf(known.dataset.feature_names.indexOf(name));
  const [low, high] = own(state.ranges, name) ?? [null, null];
  const parts = [];
  if (low !== null) parts.push(`at least ${low}${unit}`);
  if (high !== null) parts.push(`at most ${high}${unit}`);
  if (own(state.direction, name)) parts.push(`${own(state.direction, name)} only`);
  return `${name}: ${parts.join(", ")}`;
}

const without = (name) => ({ ranges: withoutEntry(state.ranges, name), direction: withoutEntry(state.direction, name) });

function openDialog(f) {
  edited = known.dataset.feature_names[f];
  const dialog = $("#limits");
  const [low, high] = own(state.ranges, edited) ?? [null, null];
  const form = $("form", dialog);
  $("#title-limits").textContent = `Limits of ${edited}`;
  const unit = known.dataset.units?.[f] ?? "";
  $(".hint", dialog).textContent = `Allowed values of the counterfactual. The training data range from ${known.dataset.low[f].toPrecision(3)} to ${known.dataset.high[f].toPrecision(3)} ${unit}`.trim() + ".";
  $(".unit", dialog).textContent = unit;
  form.low.value = low ?? "";
  form.high.value = high ?? "";
  form.direction.value = own(state.direction, edited) ?? "";
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
  const next = without(edited);
  if (dialog.returnValue === "set") {
    const ends = [form.low, form.high].map((input) => (input.value === "" ? null : input.valueAsNumber));
    if (ends.some((end) => end !== null)) next.ranges = withEntry(next.ranges, edited, ends);
    if (form.direction.value) next.direction = withEntry(next.direction, edited, form.direction.value);
  } else if (dialog.returnValue !== "clear") return;
  change(next);
}
