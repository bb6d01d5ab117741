// Which features are shown, and on which scale: the same for all answers to one question, so that the picture does not
// jump when the slider moves.

import { known, state } from "./state.js";

const MAX_FEATURES = 14; // features shown at once, unless all are requested
const LEAST = 0.25; // share of the training range that a band covers at least
let shown = { key: null, list: [] };
let latest = { key: null };
let held = false;
let steady = { key: null, low: [], high: [] };

const recording = () => `${state.dataset} ${state.row}`;
const changesOf = (answer) => (answer?.changes ?? []).map((c) => ({ ...c, f: known.dataset.feature_names.indexOf(c.feature) }));

// The features to show: all if they are few; otherwise those that the first answer to this question changes most, those
// that are constrained, and at the end those that other answers change, too.
export function shownFeatures(answers, all) {
  const names = known.dataset.feature_names;
  if (all || names.length <= MAX_FEATURES) return names.map((_, i) => i);
  const key = `${recording()} ${state.target} ${state.explainer}`;
  const size = names.map(() => 0);
  for (const answer of answers) {
    for (const { f, mean_change: change, start, end } of changesOf(answer)) {
      size[f] += (Math.abs(change) * (end - start)) / (known.dataset.high[f] - known.dataset.low[f] || 1);
    }
  }
  if (shown.key !== key || !shown.list.length) {
    const order = names.map((_, f) => f).sort((a, b) => size[b] - size[a] || a - b);
    shown = { key, list: order.slice(0, MAX_FEATURES).sort((a, b) => a - b) };
    if (!answers.some(Boolean)) return shown.list.splice(0); // decided by the first answer
  }
  const held = [...state.immutable, ...Object.keys(state.ranges), ...Object.keys(state.direction), ...Object.keys(state.frozenFeatures), ...state.strokes.map((s) => s.feature)];
  const more = [...held.map((name) => names.indexOf(name)), ...size.map((s, f) => (s > 0 ? f : -1)).sort((a, b) => size[b] - size[a])];
  for (const f of more) if (f >= 0 && !shown.list.includes(f) && shown.list.length < 2 * MAX_FEATURES) shown.list.push(f);
  return [...shown.list];
}

function rangeOfRecording(f) {
  let [low, high] = [Infinity, -Infinity];
  for (let t = 0; t < known.series.length; t++) {
    const value = known.series.values[t][f];
    if (value === null) continue; // missing
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) [low, high] = [known.dataset.low[f], known.dataset.high[f]];
  const missing = Math.max(0, (LEAST * (known.dataset.high[f] - known.dataset.low[f]) || 1) - (high - low)) / 2;
  return [low - missing, high + missing];
}

// While a curve is pulled, its scale must not move under the pointer.
export function holdScales(on) {
  held = on;
}

// Within the range of the training data a scale grows and stays; beyond it only as long as such an answer is shown.
export function scalesFor(answers) {
  if (held && latest.key === recording()) return latest;
  if (steady.key !== recording()) {
    const ranges = known.dataset.feature_names.map((_, f) => rangeOfRecording(f));
    steady = { key: recording(), low: ranges.map(([low]) => low), high: ranges.map(([, high]) => high) };
  }
  const scales = { low: [...steady.low], high: [...steady.high] };
  for (const answer of answers) {
    for (const { f, start, end } of changesOf(answer)) {
      for (let t = start; t < end; t++) {
        const value = answer.counterfactual[t][f];
        scales.low[f] = Math.min(scales.low[f], value);
        scales.high[f] = Math.max(scales.high[f], value);
      }
    }
  }
  scales.low.forEach((low, f) => {
    if (low >= known.dataset.low[f]) steady.low[f] = Math.min(steady.low[f], low);
    if (scales.high[f] <= known.dataset.high[f]) steady.high[f] = Math.max(steady.high[f], scales.high[f]);
  });
  latest = { key: recording(), ...scales };
  return latest;
}
