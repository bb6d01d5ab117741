// Explanations: sends a request whenever something changes, one at a time and always for the latest state.

import { drawAnswers, drawNoAnswer, summary } from "./answers.js";
import { get, onReturn, post } from "./api.js";
import { drawBody } from "./body.js";
import { drawCurve, hold, loadCurve } from "./curve.js";
import { $, announce, notice, options, percent } from "./dom.js";
import { drawCode } from "./exports.js";
import { drawFigure, shownFeatures } from "./figure.js";
import { drawHand } from "./hand.js";
import { drawFeatures, drawLocked } from "./locks.js";
import { fullName, partText } from "./queries.js";
import { currentExplainers, methodName } from "./setup.js";
import { act, canRedo, canUndo, explainRequest, known, NOT_DRAWN, set, state } from "./state.js";

const BUSY_DELAY = 250; // milliseconds after which the page shows that it is waiting
let answers = null;
let others = null;
let showAll = false;
let failed = false; // the last request got no response at all

export function initExplanation() {
  const choose = (id, changes) => $(id).addEventListener("change", (event) => { act({ shown: 0, ...changes(event.target.value) }); explain(); });
  choose("#target", (value) => ({ target: value, sparsity: null }));
  choose("#answers", (value) => ({ answers: Number(value) }));
  choose("#compare", (value) => ({ compare: value || null }));
  $("#show-all").addEventListener("click", () => { showAll = !showAll; draw(); });
  $("#undo").addEventListener("click", () => history.back());
  $("#redo").addEventListener("click", () => history.forward());
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || event.target.matches("input:not([type=range], [type=checkbox])")) return;
    event.preventDefault();
    if (event.shiftKey && canRedo()) history.forward();
    else if (!event.shiftKey && canUndo()) history.back();
  });
  onReturn(() => { if (failed) explain(); });
}

// Loads the selected recording and explains it.
export async function openRecording() {
  const { view, classifier, row } = state;
  const isLeft = () => state.view !== view || state.classifier !== classifier || state.row !== row; // back was pressed
  if (known.series?.row !== state.row || known.series.dataset !== state.dataset) {
    answers = others = null;
    try {
      const { dataset } = state;
      known.series = { ...(await get(`/datasets/${dataset}/series/${row}`)), dataset };
    } catch (error) {
      if (error.code === "gone" || isLeft()) return;
      known.series = null;
      set({ row: null, ...NOT_DRAWN });
      notice(error.message);
      return;
    }
  }
  if (known.query?.row !== state.row || known.query?.classifier !== state.classifier) {
    const page = await get(`/classifiers/${classifier}/queries?offset=${row}&limit=1`);
    known.query = { ...page.items[0], classifier };
  }
  if (isLeft()) return; // what follows is about the recording, and the state is that of something else
  if (state.target === known.query.predicted || !known.dataset.class_names.includes(state.target)) set({ target: null });
  drawControls();
  await explain();
}

function drawControls() {
  const { predicted, probability, label, part } = known.query;
  const title = $("#title-request");
  const strong = document.createElement("strong");
  strong.textContent = predicted;
  const truth = label === null ? ", no label" : label === predicted ? "" : `; label: ${label}`;
  title.replaceChildren(`${fullName(known.query)}: predicted class `, strong, `, probability ${percent(probability)}${truth}${part === "test" ? "" : ` (${partText(part)})`}.`);
  document.title = `${fullName(known.query)} · sparcets studio`; // in the history of the browser, too
  const classes = known.dataset.class_names.filter((name) => name !== predicted);
  if (state.target === null && classes.length === 1) set({ target: classes[0] });
  const choices = classes.map((name) => [name, name]);
  options($("#target"), state.target === null ? [["", "the next most likely"], ...choices] : choices, state.target ?? "");
  options($("#answers"), Array.from({ length: Math.min(5, known.status.answers) }, (_, i) => [i + 1, String(i + 1)]), state.answers);
  const alternatives = currentExplainers().filter((e) => e.id !== state.explainer);
  const explainerName = (e) => `${methodName(e.method)}${e.preset === "tiny" ? ", quick" : ""}`;
  options($("#compare"), [["", alternatives.length ? "nothing" : "no second explainer"], ...alternatives.map((e) => [e.id, explainerName(e)])], state.compare ?? "");
  $("#compare").disabled = !alternatives.length;
}

let running = false;
let outdated = false; // the state has changed since the request was sent
let started = 0; // when it was changed

export async function explain() {
  hold();
  drawHistory();
  started = performance.now();
  if (running) {
    outdated = true;
    return;
  }
  running = true;
  do {
    outdated = false;
    await sendRequests();
  } while (outdated);
  running = false;
  document.body.dataset.drawn = String(Number(document.body.dataset.drawn ?? 0) + 1);
  if (answers) loadCurve();
}

function drawHistory() {
  $("#undo").disabled = !canUndo();
  $("#redo").disabled = !canRedo();
}

async function sendRequests() {
  const busyTimer = setTimeout(() => busy(true), BUSY_DELAY);
  try {
    await send();
    clearTimeout(busyTimer);
    busy(false);
    await draw();
    performance.measure("answer", { start: started });
    document.body.dataset.shown = String(Number(document.body.dataset.shown ?? 0) + 1);
  } catch (error) {
    if (outdated) return;
    failed = error.code === "gone";
    if (failed) return; // what is shown stays until the studio is back
    answers = others = null;
    notice(error.message);
    await draw();
  } finally {
    clearTimeout(busyTimer);
    busy(false);
  }
}

// Requests an answer, and that of a second method, and takes them over.
async function send() {
  const requests = [post("/explanations", { ...explainRequest(), urgent: true })];
  if (state.compare && !state.strokes.length) requests.push(post("/explanations", { ...explainRequest(state.compare), urgent: true }));
  const [first, second] = await Promise.allSettled(requests);
  if (outdated) throw new Error("the state has changed");
  if (first.reason) throw first.reason;
  failed = false;
  answers = first.value.answers;
  others = second?.value ? Object.assign(second.value.answers, { method: second.value.method }) : null;
  if (state.target === null) {
    set({ target: answers[0].target });
    drawControls();
  }
  if (state.shown >= answers.length) set({ shown: 0 });
  notice(second?.reason?.message ?? "");
  announce(summary(answers[state.shown]));
}

function busy(on) {
  for (const id of ["#verdict", "#answer-text", "#plot"]) $(id).setAttribute("aria-busy", String(on));
  if (on) announce("Computing…");
}

export async function draw() {
  if (!known.series || !known.query) return;
  const answer = answers?.[state.shown] ?? null;
  const other = others?.[Math.min(state.shown, others.length - 1)] ?? null;
  const features = shownFeatures([answer, other], showAll);
  const all = known.dataset.feature_names.length;
  $("#show-all").hidden = all === features.length && !showAll;
  $("#show-all").textContent = showAll ? "Show only the most relevant features" : `Show all ${all} features (${features.length} shown)`;
  if (answers) drawAnswers(answers, others, draw);
  else drawNoAnswer();
  drawCurve(answer);
  drawFeatures(features, answer);
  drawLocked();
  drawHand(answer);
  await drawFigure(answer, other, features);
  drawBody(answer);
  drawCode();
}
