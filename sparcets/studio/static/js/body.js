// The stick figure beside the curves: the recording, and what the answer makes of it, at one moment or as a movement.

import { $, svg } from "./dom.js";
import { showMoment, timeText } from "./figure.js";
import { known } from "./state.js";
import { answerLook, colours } from "./theme.js";

const [WIDTH, HEIGHT] = [240, 220];
const MARGIN = 14;
const FRAMES = 25; // per second, where the sampling rate is not known
let moment = 0;
let shown = null; // the answer
let of = null; // the recording and target that the moment was chosen for
let playing = null;

export function initBody() {
  $("#moment").addEventListener("input", (event) => { stop(); setMoment(event.target.valueAsNumber); });
  $("#play").addEventListener("click", () => (playing === null ? play() : stop()));
}

export function drawBody(answer) {
  shown = answer;
  const skeleton = known.skeleton?.limbs ? known.skeleton : null;
  $("#body").hidden = !skeleton;
  const key = `${known.series.dataset} ${known.series.row} ${answer?.target}`;
  if (key !== of && answer) {
    of = key;
    stop();
    moment = largestChange(answer);
  }
  moment = Math.min(moment, known.series.length - 1);
  $("#moment").max = known.series.length - 1;
  setMoment(moment);
}

// The step at which most changes, in shares of the training range.
function largestChange(answer) {
  const size = known.series.values.slice(0, known.series.length).map((step, t) => step.reduce((sum, value, f) => (
    value === null ? sum : sum + Math.abs(answer.counterfactual[t][f] - value) / (known.dataset.high[f] - known.dataset.low[f] || 1)), 0));
  return Math.max(0, size.indexOf(Math.max(...size)));
}

export function setMoment(step) {
  moment = step;
  $("#moment").value = step;
  $("#moment").setAttribute("aria-valuetext", timeText(step));
  $("#moment-text").textContent = timeText(step);
  if ($("#body").hidden) return;
  showMoment(step);
  drawPicture();
}

// Of a moment the pointer is at; the figure follows unless it is playing.
export function follow(step) {
  if (playing === null && !$("#body").hidden) setMoment(step);
}

function play() {
  const began = performance.now();
  const first = moment >= known.series.length - 1 ? 0 : moment;
  const rate = known.dataset.sampling_rate ?? FRAMES;
  $("#play").textContent = "Stop";
  const next = () => {
    const step = first + Math.floor(((performance.now() - began) / 1000) * rate);
    if (step >= known.series.length) return stop();
    setMoment(step);
    playing = requestAnimationFrame(next);
    return null;
  };
  playing = requestAnimationFrame(next);
}

function stop() {
  if (playing !== null) cancelAnimationFrame(playing);
  playing = null;
  $("#play").textContent = "Play";
}

// The frame holds the whole movement, before and after, so that the figure does not jump.
function frame(skeleton) {
  const [low, high] = [[Infinity, Infinity], [-Infinity, -Infinity]];
  for (const values of [known.series.values, ...(shown ? [shown.counterfactual] : [])]) {
    for (let t = 0; t < known.series.length; t++) {
      for (const [name, indices] of Object.entries(skeleton.points)) {
        if (name === skeleton.ball) continue; // it may be far away
        indices.forEach((f, axis) => {
          if (values[t][f] === null) return;
          low[axis] = Math.min(low[axis], values[t][f]);
          high[axis] = Math.max(high[axis], values[t][f]);
        });
      }
    }
  }
  const size = Math.max((high[0] - low[0]) / (WIDTH - 2 * MARGIN), (high[1] - low[1]) / (HEIGHT - 2 * MARGIN)) || 1;
  const middle = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2];
  return ([x, y]) => [WIDTH / 2 + (x - middle[0]) / size, HEIGHT / 2 - (y - middle[1]) / size];
}

function drawPicture() {
  const { skeleton } = known;
  const palette = colours();
  const place = frame(skeleton);
  const at = (values, name) => {
    const found = skeleton.points[name].map((f) => values[moment][f]);
    return found.includes(null) ? null : place(found);
  };
  const limbs = (values, colour, width, dash = null) => [...skeleton.outline.map((pair) => [pair, true]), ...skeleton.limbs.map((pair) => [pair, false])]
    .flatMap(([[a, b], thin]) => {
      const [from, to] = [at(values, a), at(values, b)];
      if (!from || !to) return [];
      const right = a.startsWith("Right") ? "5 2" : null;
      return [svg("line", { x1: from[0], y1: from[1], x2: to[0], y2: to[1], stroke: colour, "stroke-width": thin ? 0.8 : width, "stroke-linecap": "round", "stroke-dasharray": thin ? "2 3" : (dash ?? right) })];
    });
  const moved = (name) => skeleton.points[name].some((f) => shown.counterfactual[moment][f] !== known.series.values[moment][f]);
  const points = (values, colour, marked) => Object.keys(skeleton.points).filter((name) => name !== skeleton.ball).flatMap((name) => {
    const spot = at(values, name);
    return spot ? [svg("circle", { cx: spot[0], cy: spot[1], r: marked && moved(name) ? 4.5 : 2.8, fill: colour })] : [];
  });
  const parts = [...limbs(known.series.values, palette.recorded, 2.2), ...points(known.series.values, palette.recorded, false)];
  if (shown && shown.status !== "unchanged") {
    const look = answerLook(shown);
    parts.push(...limbs(shown.counterfactual, look.color, 2.6, look.dash === "solid" ? null : "4 3"), ...points(shown.counterfactual, look.color, true));
  }
  if (skeleton.ball) {
    const spot = at(known.series.values, skeleton.ball);
    if (spot) parts.push(svg("circle", { cx: spot[0], cy: spot[1], r: 6, fill: "none", stroke: palette.ink, "stroke-width": 1.3 }));
  }
  $("#body-picture").replaceChildren(svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" }, ...parts));
  $("#body-picture").setAttribute("aria-label", `Stick figure at ${timeText(moment)}: the recording in grey, ${shown?.verdict.word ?? "no answer"} in colour`);
}
