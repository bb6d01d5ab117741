// Question and answer: asks whenever something was changed, one question at a time, always the latest.

import { get, post, send } from "./api.js";
import { $, notice, options, percent, speak } from "./dom.js";
import { drawCode } from "./exports.js";
import { drawFeatures, drawLocked } from "./locks.js";
import { drawPicture, shownFeatures } from "./picture.js";
import { explainersHere, methodName } from "./setup.js";
import { known, question, set, state } from "./state.js";
import { drawWords, inShort } from "./words.js";

const STOPS = [0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, null];
const NEXT_LOCKS = 4; // features whose lock is thought of
const IDLE = 100; // milliseconds without a question after which the studio thinks ahead
const PATIENCE = 250; // milliseconds after which the page says that it is waiting
let answers = null;
let others = null;
let showAll = false;

export function beginQuestion() {
  const slider = $("#sparsity");
  slider.max = STOPS.length - 1;
  slider.addEventListener("input", () => {
    set({ sparsity: STOPS[slider.valueAsNumber], shown: 0 });
    sayStop();
    ask();
  });
  $("#target").addEventListener("change", (event) => { set({ target: event.target.value, shown: 0 }); ask(); });
  $("#answers").addEventListener("change", (event) => { set({ answers: Number(event.target.value), shown: 0 }); ask(); });
  $("#compare").addEventListener("change", (event) => { set({ compare: event.target.value || null }); ask(); });
  if (matchMedia("(pointer: coarse)").matches) $("#hint").textContent = "Tap a feature to lock it. Lock a stretch of time below.";
  $("#show-all").addEventListener("click", () => { showAll = !showAll; draw(); });
}

function sayStop() {
  const words = state.sparsity === null ? "as much as needed" : `at most ${percent(state.sparsity)}`;
  $("#sparsity-words").textContent = words;
  $("#sparsity").setAttribute("aria-valuetext", words);
}

// The recording was changed: fetch it, and ask.
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
  await ask();
}

function drawControls() {
  const { row, predicted, probability, label } = known.query;
  const title = $("#title-question");
  const strong = document.createElement("strong");
  strong.textContent = predicted;
  title.replaceChildren(`Recording ${row}: the model says `, strong, `, ${percent(probability)} sure${label === predicted ? "." : `; it is ${label}.`}`);
  const classes = known.dataset.class_names.filter((name) => name !== predicted);
  if (state.target === null && classes.length === 1) set({ target: classes[0] });
  const choices = classes.map((name) => [name, name]);
  options($("#target"), state.target === null ? [["", "the next most likely"], ...choices] : choices, state.target ?? "");
  $("#sparsity").value = STOPS.indexOf(state.sparsity) < 0 ? STOPS.length - 1 : STOPS.indexOf(state.sparsity);
  sayStop();
  options($("#answers"), Array.from({ length: Math.min(5, known.status.answers) }, (_, i) => [i + 1, String(i + 1)]), state.answers);
  const rest = explainersHere().filter((e) => e.id !== state.explainer);
  const name = (e) => `${methodName(e.method)}${e.preset === "tiny" ? ", quick" : ""}`;
  options($("#compare"), [["", rest.length ? "nothing" : "no second explainer"], ...rest.map((e) => [e.id, name(e)])], state.compare ?? "");
  $("#compare").disabled = !rest.length;
}

let running = false;
let again = false;

export async function ask() {
  if (running) {
    again = true;
    return;
  }
  running = true;
  clearTimeout(idle);
  const begun = performance.now();
  const waiting = setTimeout(() => busy(true), PATIENCE);
  do {
    again = false;
    await once();
  } while (again);
  clearTimeout(waiting);
  busy(false);
  running = false;
  thinkAhead();
  performance.measure("answer", { start: begun });
  document.body.dataset.drawn = String(Number(document.body.dataset.drawn ?? 0) + 1);
}

// While the person looks, the studio works on what may come next: the slider's other stops, the nearest first, and
// locks of what the answer changes most; who has just locked something may lock more, and who slides may slide on.
let thoughtOf = "";
let limitsThen = "";
let idle = null;

function thinkAhead() {
  clearTimeout(idle);
  idle = setTimeout(() => {
    const now = JSON.stringify([question(), state.compare]);
    if (now === thoughtOf || !answers) return;
    thoughtOf = now;
    const here = STOPS.indexOf(state.sparsity);
    const near = [...STOPS.keys()].filter((i) => i !== here).sort((a, b) => Math.abs(a - here) - Math.abs(b - here));
    const stops = near.map((i) => ({ sparsity: STOPS[i] }));
    const limits = JSON.stringify(question().constraints);
    const next = limits !== limitsThen && limitsThen ? [...likelyLocks(), ...stops] : [...stops, ...likelyLocks()];
    limitsThen = limits;
    const explainers = [state.explainer, state.compare].filter(Boolean);
    const questions = next.flatMap((change) => explainers.map((e) => ({ ...question(e), ...change })));
    send("/explanations/ahead", { questions }).catch(() => { thoughtOf = ""; });
  }, IDLE);
}

function likelyLocks() {
  const size = {};
  for (const { feature, start, end, mean_change: change } of answers[state.shown].changes) {
    const f = known.dataset.feature_names.indexOf(feature);
    size[feature] = (size[feature] ?? 0) + (Math.abs(change) * (end - start)) / (known.dataset.high[f] - known.dataset.low[f] || 1);
  }
  const largest = Object.keys(size).sort((a, b) => size[b] - size[a]).slice(0, NEXT_LOCKS);
  const { constraints } = question();
  return [
    ...largest.map((name) => [...state.immutable, name]),
    ...state.immutable.map((name) => state.immutable.filter((n) => n !== name)),
  ].map((immutable) => ({ constraints: { ...constraints, immutable } }));
}

async function once() {
  try {
    const asked = [post("/explanations", question())];
    if (state.compare) asked.push(post("/explanations", question(state.compare)));
    const [first, second] = await Promise.all(asked);
    if (again) return; // something newer is wanted already
    answers = first.answers;
    others = second ? Object.assign(second.answers, { method: second.method }) : null;
    if (state.target === null) {
      set({ target: answers[0].target });
      drawControls();
    }
    if (state.shown >= answers.length) set({ shown: 0 });
    notice("");
    speak(inShort(answers[state.shown]));
  } catch (error) {
    if (again) return;
    answers = others = null;
    notice(error.message);
  }
  await draw();
}

function busy(on) {
  for (const id of ["#words", "#plot"]) $(id).setAttribute("aria-busy", String(on));
  if (on) speak("Looking for an answer…");
}

export async function draw() {
  const answer = answers?.[state.shown] ?? null;
  const other = others?.[Math.min(state.shown, others.length - 1)] ?? null;
  const features = shownFeatures([answer, other], showAll);
  const all = known.dataset.feature_names.length;
  $("#show-all").hidden = all === features.length && !showAll;
  $("#show-all").textContent = showAll ? "Show only the features that matter here" : `Show all ${all} features (${features.length} shown)`;
  $(".key.other").hidden = !other;
  if (answers) drawWords(answers, others, draw);
  else $("#words").replaceChildren("There is no answer to show.");
  drawFeatures(features, answer);
  drawLocked();
  await drawPicture(answer, other, features);
  drawCode();
}
