// The plot: one band per feature in a single pair of axes, which is redrawn in milliseconds. Each band has its own scale
// in the feature's unit; the lock buttons are beside the bands.

import { $, short } from "./dom.js";
import { known, state } from "./state.js";

const COLOURS = { before: "#7a7a7a", after: "#0072b2", other: "#d55e00", mark: "rgba(230,159,0,0.18)", markOther: "rgba(213,94,0,0.12)", locked: "rgba(91,102,114,0.2)", line: "#e3e8ed" };
const TOP = 6;
const BOTTOM = 46;
const CURVE_HEIGHT = 0.7; // share of a band that its curve may use
const MAX_FEATURES = 14; // features shown at once, unless all are requested

let onDrag = () => {};
let scales = { key: null, low: [], high: [] };
let listening = false;

export function initFigure(listener) {
  onDrag = listener;
}

export const bandHeight = () => parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--band"));
export const stepsToTime = (step) => (known.dataset.sampling_rate ? step / known.dataset.sampling_rate : step);
export const timeUnit = () => (known.dataset.sampling_rate ? "s" : "steps");

// The features to show: all if they are few; otherwise those that change most or are constrained.
export function shownFeatures(answers, all) {
  const names = known.dataset.feature_names;
  if (all || names.length <= MAX_FEATURES) return names.map((_, i) => i);
  const size = names.map(() => 0);
  for (const answer of answers) {
    for (const change of answer?.changes ?? []) {
      const f = names.indexOf(change.feature);
      size[f] += (Math.abs(change.mean_change) * (change.end - change.start)) / (known.dataset.high[f] - known.dataset.low[f] || 1);
    }
  }
  const held = new Set([...state.immutable, ...Object.keys(state.ranges), ...Object.keys(state.direction)]);
  const rank = (f) => (held.has(names[f]) ? 1e6 : 0) + size[f];
  const order = names.map((_, f) => f).sort((a, b) => rank(b) - rank(a) || a - b);
  return order.slice(0, MAX_FEATURES).sort((a, b) => a - b);
}

// Scales only grow while one recording is shown, so that its curve does not move when the slider does.
function fitScales(key, answers) {
  const { values } = known.series;
  if (scales.key !== key) {
    scales = { key, low: [], high: [] };
    known.dataset.feature_names.forEach((_, f) => {
      let [low, high] = [Infinity, -Infinity];
      for (let t = 0; t < known.series.length; t++) {
        if (values[t][f] === null) continue; // missing
        low = Math.min(low, values[t][f]);
        high = Math.max(high, values[t][f]);
      }
      if (low > high) [low, high] = [known.dataset.low[f], known.dataset.high[f]];
      const least = 0.25 * (known.dataset.high[f] - known.dataset.low[f]) || 1;
      const missing = Math.max(0, least - (high - low)) / 2;
      scales.low.push(low - missing);
      scales.high.push(high + missing);
    });
  }
  for (const answer of answers) {
    for (const change of answer?.changes ?? []) {
      const f = known.dataset.feature_names.indexOf(change.feature);
      for (let t = change.start; t < change.end; t++) {
        scales.low[f] = Math.min(scales.low[f], answer.counterfactual[t][f]);
        scales.high[f] = Math.max(scales.high[f], answer.counterfactual[t][f]);
      }
    }
  }
}

// With enough digits to distinguish the two ends of a scale.
function rounded(value, span) {
  const digits = Math.max(0, 1 - Math.floor(Math.log10(span || 1)));
  return Math.abs(value) >= 1e5 || digits > 5 ? value.toExponential(1) : (Number(value.toFixed(digits)) || 0).toFixed(digits);
}

const escaped = (text) => text.replaceAll("<", "&lt;");

export async function drawFigure(answer, other, features) {
  const names = known.dataset.feature_names;
  fitScales(`${state.dataset} ${state.row}`, [answer, other]);
  const count = features.length;
  const base = new Map(features.map((f, i) => [f, count - 1 - i]));
  const at = (f, value) => base.get(f) + (1 - CURVE_HEIGHT) / 2 + (CURVE_HEIGHT * (value - scales.low[f])) / (scales.high[f] - scales.low[f] || 1);
  const unit = (f) => (known.dataset.units?.[f] ? ` ${known.dataset.units[f]}` : "");
  const seconds = timeUnit() === "s";
  const when = (t) => (seconds ? `${stepsToTime(t).toFixed(2)} s` : `step ${t}`);

  const line = (series, segments, label) => {
    const [x, y, text] = [[], [], []];
    for (const [f, from, to] of segments) {
      for (let t = from; t < to; t++) {
        x.push(stepsToTime(t));
        const value = series[t][f]; // null if it is missing, which leaves a gap in the line
        y.push(value === null ? null : at(f, value));
        text.push(value === null ? "" : `${escaped(names[f])}, ${when(t)}<br>${label} ${short(value)}${escaped(unit(f))}`);
      }
      x.push(null);
      y.push(null);
      text.push("");
    }
    return { x, y, text, hovertemplate: "%{text}<extra></extra>", mode: "lines", type: "scatter" };
  };
  const boxes = (list, fillcolor) => {
    const [x, y] = [[], []];
    for (const [x0, x1, y0, y1] of list) {
      x.push(x0, x1, x1, x0, x0, null);
      y.push(y0, y0, y1, y1, y0, null);
    }
    return { x, y, fill: "toself", fillcolor, mode: "lines", line: { width: 0 }, hoverinfo: "skip", type: "scatter" };
  };
  const half = stepsToTime(1) / 2;
  const changes = (result) => (result?.changes ?? []).map((c) => ({ ...c, f: names.indexOf(c.feature) })).filter((c) => base.has(c.f));
  const marks = (result) => changes(result).map((c) => [stepsToTime(c.start) - half, stepsToTime(c.end) - half, base.get(c.f) + 0.03, base.get(c.f) + 0.97]);
  // A changed segment is drawn with one step before and after it, to show where it leaves the recording.
  const segments = (result) => changes(result).map((c) => [c.f, Math.max(0, c.start - 1), Math.min(known.series.length, c.end + 1)]);
  const end = stepsToTime(known.series.length - 1) + half;

  const held = features.filter((f) => state.immutable.includes(names[f]) || !known.dataset.mutable[f]);
  const locked = [
    ...held.map((f) => [-half, end, base.get(f) + 0.03, base.get(f) + 0.97]),
    ...state.frozen.map(([from, to]) => [stepsToTime(from) - half, stepsToTime(to) - half, 0, count]),
  ];
  const traces = [
    boxes(locked, COLOURS.locked),
    boxes(marks(other), COLOURS.markOther),
    boxes(marks(answer), COLOURS.mark),
    { ...line(known.series.values, features.map((f) => [f, 0, known.series.length]), "recorded"), line: { color: COLOURS.before, width: 1.3 } },
  ];
  if (other) traces.push({ ...line(other.counterfactual, segments(other), "compared"), line: { color: COLOURS.other, width: 2.2, dash: "dot" } });
  if (answer) traces.push({ ...line(answer.counterfactual, segments(answer), "answer"), line: { color: COLOURS.after, width: 2.4 } });

  const plot = $("#plot");
  const narrow = plot.clientWidth < 480;
  const layout = {
    height: TOP + count * bandHeight() + BOTTOM,
    margin: { l: narrow ? 36 : 46, r: 8, t: TOP, b: BOTTOM },
    showlegend: false,
    hovermode: "closest",
    hoverlabel: { bgcolor: "#fff", bordercolor: "#8d99a5", font: { color: "#1c2733" } },
    dragmode: mayDrag() ? "select" : false,
    selectdirection: "h",
    font: { family: "system-ui, sans-serif", size: 12, color: "#55616e" },
    plot_bgcolor: "#fff",
    paper_bgcolor: "#fff",
    xaxis: { range: [-half, end], title: { text: seconds ? "time (s)" : "time (steps)", standoff: 8 }, zeroline: false, gridcolor: "#eef1f4", fixedrange: true, nticks: narrow ? 5 : 10 },
    yaxis: {
      range: [0, count], fixedrange: true, zeroline: false, showgrid: false, tickfont: { size: 9.5 },
      tickvals: features.flatMap((f) => [at(f, scales.low[f]), at(f, scales.high[f])]),
      ticktext: features.flatMap((f) => [scales.low[f], scales.high[f]].map((end) => rounded(end, scales.high[f] - scales.low[f]))),
    },
    shapes: features.slice(1).map((f) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: base.get(f) + 1, y1: base.get(f) + 1, line: { color: COLOURS.line, width: 1 }, layer: "below" })),
    selections: [],
  };
  await window.Plotly.react(plot, traces, layout, { displayModeBar: false, responsive: true, doubleClick: false });
  if (!listening) {
    listening = true;
    plot.on("plotly_selected", (event) => {
      const range = event?.range?.x;
      window.Plotly.relayout(plot, { selections: [] });
      if (range) onDrag(toSteps(Math.min(...range)), toSteps(Math.max(...range)) + 1);
    });
  }
  plot.setAttribute("aria-label", plotLabel(answer, features.length));
}

// Touch scrolls the page unless dragging on the figure is switched on.
export const mayDrag = () => !matchMedia("(pointer: coarse)").matches || $("#drag").getAttribute("aria-pressed") === "true";

export function toSteps(time) {
  const step = Math.round(known.dataset.sampling_rate ? time * known.dataset.sampling_rate : time);
  return Math.max(0, Math.min(known.series.length - 1, step));
}

function plotLabel(answer, count) {
  const touched = new Set((answer?.changes ?? []).map((c) => c.feature)).size;
  return `Recording ${state.row} over time, ${count} features shown${answer ? `; the answer changes ${touched} of them` : ""}. The text above describes the changes.`;
}
