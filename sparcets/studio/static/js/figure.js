// The plot: one band per feature in a single pair of axes, which is redrawn in milliseconds. Each band has its own scale
// in the feature's unit; the lock buttons are beside the bands.

import { $, el, short } from "./dom.js";
import { scalesFor, shownFeatures } from "./scales.js";
import { known, own, state } from "./state.js";
import { answerLook, colours } from "./theme.js";

const TOP = 6;
const BOTTOM = 46;
const CURVE_HEIGHT = 0.7; // share of a band that its curve may use
let onWindow = () => {};
let onMoment = () => {};
let listening = false;
let pressed = null; // band in which a drag began
export let geometry = null; // where features and values are drawn, for what is laid over the plot

export function initFigure(windowListener, momentListener) {
  onWindow = windowListener;
  onMoment = momentListener;
}

export { shownFeatures };
export const bandHeight = () => parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--band"));
export const stepsToTime = (step) => (known.dataset.sampling_rate ? step / known.dataset.sampling_rate : step);
export const timeUnit = () => (known.dataset.sampling_rate ? "s" : "steps");
// A time with as many decimals as tell neighbouring steps apart.
export const seconds = (step) => stepsToTime(step).toFixed(Math.max(2, Math.ceil(Math.log10(known.dataset.sampling_rate ?? 1))));
export const timeText = (step) => (known.dataset.sampling_rate ? `${seconds(step)} s` : `step ${step}`);
export const unitOf = (f) => (known.dataset.units?.[f] ? ` ${known.dataset.units[f]}` : "");
export const isLocked = (f) => !known.dataset.mutable[f] || state.immutable.includes(known.dataset.feature_names[f]);

// With enough digits to distinguish the two ends of a scale.
function rounded(value, span) {
  const digits = Math.max(0, 1 - Math.floor(Math.log10(span || 1)));
  return Math.abs(value) >= 1e5 || digits > 5 ? value.toExponential(1) : (Number(value.toFixed(digits)) || 0).toFixed(digits);
}

const escaped = (text) => text.replaceAll("<", "&lt;");

export async function drawFigure(answer, other, features) {
  const names = known.dataset.feature_names;
  const scales = scalesFor([answer, other]);
  const palette = colours();
  const count = features.length;
  const base = new Map(features.map((f, i) => [f, count - 1 - i]));
  const span = (f) => scales.high[f] - scales.low[f] || 1;
  const at = (f, value) => base.get(f) + (1 - CURVE_HEIGHT) / 2 + (CURVE_HEIGHT * (value - scales.low[f])) / span(f);

  const line = (series, segments, label) => {
    const [x, y, text] = [[], [], []];
    for (const [f, from, to] of segments) {
      for (let t = from; t < to; t++) {
        x.push(stepsToTime(t));
        const value = series[t][f]; // null if it is missing, which leaves a gap in the line
        y.push(value === null ? null : at(f, value));
        text.push(value === null ? "" : `${escaped(names[f])}, ${timeText(t)}<br>${label} ${short(value)}${escaped(unitOf(f))}`);
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
  const box = (f, start, stop) => [stepsToTime(start) - half, stepsToTime(stop) - half, base.get(f) + 0.03, base.get(f) + 0.97];
  const marks = (result) => changes(result).map((c) => box(c.f, c.start, c.end));
  // A changed segment is drawn with one step before and after it, to show where it leaves the recording.
  const segments = (result) => changes(result).map((c) => [c.f, Math.max(0, c.start - 1), Math.min(known.series.length, c.end + 1)]);
  const end = stepsToTime(known.series.length - 1) + half;

  const locked = [
    ...features.filter(isLocked).map((f) => box(f, 0, known.series.length)),
    ...features.flatMap((f) => (own(state.frozenFeatures, names[f]) ?? []).map(([from, to]) => box(f, from, to))),
    ...state.frozen.map(([from, to]) => [stepsToTime(from) - half, stepsToTime(to) - half, 0, count]),
  ];
  const traces = [
    boxes(locked, palette["locked-area"]),
    boxes(marks(other), palette["mark-other"]),
    boxes(marks(answer), palette.mark),
    { ...line(known.series.values, features.map((f) => [f, 0, known.series.length]), "recorded"), line: { color: palette.recorded, width: 1.3 } },
  ];
  if (other) traces.push({ ...line(other.counterfactual, segments(other), `compared (${other.verdict.word})`), line: { color: palette.other, width: 2.2, dash: "dot" } });
  if (answer) {
    const look = answerLook(answer);
    traces.push({ ...line(answer.counterfactual, segments(answer), look.label), line: { color: look.color, width: 2.4, dash: look.dash } });
  }

  const plot = $("#plot");
  const narrow = plot.clientWidth < 480;
  const left = narrow ? 36 : 46;
  const layout = {
    height: TOP + count * bandHeight() + BOTTOM,
    margin: { l: left, r: 8, t: TOP, b: BOTTOM },
    showlegend: false,
    hovermode: "closest",
    hoverlabel: { bgcolor: palette.card, bordercolor: palette.soft, font: { color: palette.ink } },
    dragmode: mayDrag() ? "select" : false,
    selectdirection: "h",
    font: { family: "system-ui, sans-serif", size: 12, color: palette.soft },
    plot_bgcolor: palette.card,
    paper_bgcolor: palette.card,
    xaxis: { range: [-half, end], title: { text: timeUnit() === "s" ? "time (s)" : "time (steps)", standoff: 8 }, zeroline: false, gridcolor: palette.grid, fixedrange: true, nticks: narrow ? 5 : 10 },
    yaxis: {
      range: [0, count], fixedrange: true, zeroline: false, showgrid: false, tickfont: { size: 9.5 },
      tickvals: features.flatMap((f) => [at(f, scales.low[f]), at(f, scales.high[f])]),
      ticktext: features.flatMap((f) => [scales.low[f], scales.high[f]].map((value) => rounded(value, span(f)))),
    },
    shapes: features.slice(1).map((f) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: base.get(f) + 1, y1: base.get(f) + 1, line: { color: palette.line, width: 1 }, layer: "below" })),
    selections: [],
  };
  await window.Plotly.react(plot, traces, layout, { displayModeBar: false, responsive: true, doubleClick: false });
  listen(plot);
  const width = plot.clientWidth - left - 8;
  geometry = {
    features, left, top: TOP, width, height: count * bandHeight(), band: bandHeight(),
    x: (step) => (width * (stepsToTime(step) + half)) / (end + half),
    step: (x) => Math.max(0, Math.min(known.series.length - 1, toSteps((x / width) * (end + half) - half))),
    y: (f, value) => bandHeight() * (count - at(f, value)),
    value: (f, y) => scales.low[f] + ((count - y / bandHeight() - base.get(f) - (1 - CURVE_HEIGHT) / 2) * span(f)) / CURVE_HEIGHT,
  };
  drawLegend(answer, other);
  plot.setAttribute("aria-label", plotLabel(answer, features.length));
}

function listen(plot) {
  if (listening) return;
  listening = true;
  plot.addEventListener("pointerdown", (event) => {
    const y = event.clientY - plot.getBoundingClientRect().top - geometry.top;
    pressed = geometry.features[Math.floor(y / geometry.band)] ?? null;
  }, true);
  plot.on("plotly_selected", (event) => {
    const range = event?.range?.x;
    window.Plotly.relayout(plot, { selections: [] });
    if (range) onWindow(toSteps(Math.min(...range)), toSteps(Math.max(...range)) + 1, pressed);
  });
  plot.on("plotly_hover", (event) => onMoment(toSteps(event.points[0].x)));
}

function drawLegend(answer, other) {
  const look = answer ? answerLook(answer) : null;
  const key = $(".key.after");
  key.hidden = !look;
  if (look) {
    key.textContent = state.strokes.length && !state.findRest ? `by hand: ${look.label}` : look.label;
    key.style.setProperty("--look", look.color);
    key.classList.toggle("dashed", look.dash !== "solid");
  }
  $(".key.other").hidden = !other;
}

// A vertical line at one step, across all bands.
export function showMoment(step) {
  const cursor = $("#cursor");
  cursor.hidden = step === null || !geometry;
  if (cursor.hidden) return;
  cursor.style.transform = `translateX(${geometry.left + geometry.x(step)}px)`;
  cursor.style.top = `${geometry.top}px`;
  cursor.style.height = `${geometry.height}px`;
}

// Touch scrolls the page unless dragging on the figure is switched on.
export const mayDrag = () => !matchMedia("(pointer: coarse)").matches || $("#drag").getAttribute("aria-pressed") === "true";

export function toSteps(time) {
  const step = Math.round(known.dataset.sampling_rate ? time * known.dataset.sampling_rate : time);
  return Math.max(0, Math.min(known.series.length - 1, step));
}

function plotLabel(answer, count) {
  const touched = new Set((answer?.changes ?? []).map((c) => c.feature)).size;
  return `Recording over time, ${count} features shown${answer ? `; ${answer.verdict.word}, ${touched} features change` : ""}. The text below describes the changes.`;
}

// The features as entries of a selection, those that may change first.
export function featureOptions(first = []) {
  return [...first, ...known.dataset.feature_names.filter((_, f) => known.dataset.mutable[f]).map((name) => [name, name])]
    .map(([value, text]) => el("option", { value }, text));
}
