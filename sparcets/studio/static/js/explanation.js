// Explanations: sends a request whenever something changes, one at a time and always for the latest state.

import { drawAnswers, summary } from "./answers.js";
import { get, post } from "./api.js";
import { $, announce, notice, options, percent } from "./dom.js";
import { drawCode } from "./exports.js";
import { drawFigure, shownFeatures } from "./figure.js";
import { drawFeatures, drawLocked } from "./locks.js";
import { fullName } from "./queries.js";
import { currentExplainers, methodName } from "./setup.js";
import { explainRequest, known, set, state } from "./state.js";

const STOPS = [0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, null];
const BUSY_DELAY = 250; // milliseconds after which the page shows that it is waiting
let answers = null;
let others = null;
let showAll = false;

export function initExplanation() {
  const slider = $("#sparsity");
  slider.max = STOPS.length - 1;
  slider.addEventListener("input", () => {
    set({ sparsity: STOPS[slider.valueAsNumber], shown: 0 });
    drawSliderValue();
    explain();
  });
  $("#target").addEventListener("change", (event) => { set({ target: event.target.value, shown: 0 }); explain(); });
  $("#answers").addEventListener("change", (event) => { set({ answers: Number(event.target.value), shown: 0 }); explain(); });
  $("#compare").addEventListener("change", (event) => { set({ compare: event.target.value || null }); explain(); });
  if (matchMedia("(pointer: coarse)").matches) $("#hint").textContent = "Tap a feature to lock it. Lock a time window below.";
  $("#show-all").addEventListener("click", () => { showAll = !showAll; draw(); });
}

function drawSliderValue() {
  const text = state.sparsity === null ? "as much as needed" : `at most ${percent(state.sparsity)}`;
  $("#sparsity-text").textContent = text;
  $("#sparsity").setAttribute("aria-valuetext", text);
}

// Loads the selected recording and explains it.
export async function openRecording() {
  if (known.series?.row !== state.row || known.series.dataset !== state.dataset) {
    answers = others = null;
    try {
      known.series = { ...(await get(`/datasets/${state.dataset}/series/${state.row}`)), dataset: state.dataset };
    } catch (error) {
      known.series = null;
      set({ row: null });
      notice(error.message);
      return;
    }
  }
  if (known.query?.row !== state.row || known.query?.classifier !== state.classifier) {
    const page = await get(`/classifiers/${state.classifier}/queries?offset=${state.row}&limit=1`);
    known.query = { ...page.items[0], classifier: state.classifier };
  }
  if (state.target === known.query.predicted || !known.dataset.class_names.includes(state.target)) set({ target: null });
  drawControls();
  await explain();
}

function drawControls() {
  const { row, predicted, probability, label } = known.query;
  const name = fullName(known.query);
  const title = $("#title-request");
  const strong = document.createElement("strong");
  strong.textContent = predicted;
  title.replaceChildren(`Recording ${row}${name ? ` (${name})` : ""}: predicted class `, strong, `, probability ${percent(probability)}${label === predicted ? "." : `; label: ${label}.`}`);
  const classes = known.dataset.class_names.filter((name) => name !== predicted);
  if (state.target === null && classes.length === 1) set({ target: classes[0] });
  const choices = classes.map((name) => [name, name]);
  options($("#target"), state.target === null ? [["", "the next most likely"], ...choices] : choices, state.target ?? "");
  $("#sparsity").value = STOPS.indexOf(state.sparsity) < 0 ? STOPS.length - 1 : STOPS.indexOf(state.sparsity);
  drawSliderValue();
  options($("#answers"), Array.from({ length: Math.min(5, known.status.answers) }, (_, i) => [i + 1, String(i + 1)]), state.answers);
  const alternatives = currentExplainers().filter((e) => e.id !== state.explainer);
  const explainerName = (e) => `${methodName(e.method)}${e.preset === "tiny" ? ", quick" : ""}`;
  options($("#compare"), [["", alternatives.length ? "nothing" : "no second explainer"], ...alternatives.map((e) => [e.id, explainerName(e)])], state.compare ?? "");
  $("#compare").disabled = !alternatives.length;
}

let running = false;
let outdated = false; // the state has changed since the request was sent

export async function explain() {
  if (running) {
    outdated = true;
    return;
  }
  running = true;
  const started = performance.now();
  const busyTimer = setTimeout(() => busy(true), BUSY_DELAY);
  do {
    outdated = false;
    await sendRequest();
  } while (outdated);
  clearTimeout(busyTimer);
  busy(false);
  running = false;
  performance.measure("answer", { start: started });
  document.body.dataset.drawn = String(Number(document.body.dataset.drawn ?? 0) + 1);
}

async function sendRequest() {
  try {
    const requests = [post("/explanations", explainRequest())];
    if (state.compare) requests.push(post("/explanations", explainRequest(state.compare)));
    const [first, second] = await Promise.allSettled(requests);
    if (outdated) return;
    if (first.reason) throw first.reason;
    answers = first.value.answers;
    others = second?.value ? Object.assign(second.value.answers, { method: second.value.method }) : null;
    if (state.target === null) {
      set({ target: answers[0].target });
      drawControls();
    }
    if (state.shown >= answers.length) set({ shown: 0 });
    notice(second?.reason?.message ?? "");
    announce(summary(answers[state.shown]));
  } catch (error) {
    if (outdated) return;
    answers = others = null;
    notice(error.message);
  }
  await draw();
}

function busy(on) {
  for (const id of ["#answer-text", "#plot"]) $(id).setAttribute("aria-busy", String(on));
  if (on) announce("Computing…");
}

export async function draw() {
  const answer = answers?.[state.shown] ?? null;
  const other = others?.[Math.min(state.shown, others.length - 1)] ?? null;
  const features = shownFeatures([answer, other], showAll);
  const all = known.dataset.feature_names.length;
  $("#show-all").hidden = all === features.length && !showAll;
  $("#show-all").textContent = showAll ? "Show only the most relevant features" : `Show all ${all} features (${features.length} shown)`;
  $(".key.other").hidden = !other;
  if (answers) drawAnswers(answers, others, draw);
  else $("#answer-text").replaceChildren("There is no answer to show.");
  drawFeatures(features, answer);
  drawLocked();
  await drawFigure(answer, other, features);
  drawCode();
}
