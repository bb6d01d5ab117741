// The page: what is shown when, and who tells whom.

import { get, takeToken } from "./api.js";
import { $, el, notice } from "./dom.js";
import { beginExports } from "./exports.js";
import { watchJobs } from "./jobs.js";
import { beginLocks, lockTime } from "./locks.js";
import { beginPicture } from "./picture.js";
import { beginQueries, drawQueries } from "./queries.js";
import { ask, beginQuestion, draw, openRecording } from "./question.js";
import { beginSetup, drawSetup, jobEnded, openDataset, refresh } from "./setup.js";
import { known, readAddress, state } from "./state.js";

const NEXT = [
  [() => !known.dataset, "Begin with data",
    "A data set holds recordings over time, each with a label: who was recorded, or what was done. Open a built-in one, or upload your own; a classifier is then trained on it, and the studio shows what would have to be different in a recording for the classifier to say something else."],
  [() => !known.classifier, "Now a classifier",
    "It learns to tell the classes apart. Choose one at the left and train it: a quick try takes seconds, a thorough training a minute or two. You can watch it, and cancel it."],
  [() => !known.explainer, "Now an explainer",
    "It learns to answer what would have to be different. “Nearest recording” needs no training and shows a real example; SPARCE changes as little as it can. Fit one at the left; with two, you can compare them."],
  [() => state.row === null, "Choose a recording", "The list at the left shows recordings the classifier was not trained on, and what it says of each."],
];

async function show() {
  drawSetup();
  await drawQueries();
  const missing = NEXT.find(([lacks]) => lacks());
  $("#empty").hidden = !missing;
  $("#table").hidden = Boolean(missing);
  if (missing) {
    $("#title-empty").textContent = missing[1];
    const start = missing === NEXT[0]
      ? el("button", { type: "button", class: "primary", onclick: () => openDataset("catching") }, "Open the simulated ball-catching data") : null;
    $("#empty-text").replaceChildren(el("p", {}, missing[2]), ...(start ? [start] : []));
    return;
  }
  await openRecording();
}

async function safely(work) {
  try {
    await work();
  } catch (error) {
    notice(error.message);
  }
}

async function begin() {
  takeToken();
  readAddress();
  [known.status, known.catalog] = await Promise.all([get("/status"), get("/catalog")]);
  beginQuestion();
  beginExports();
  beginLocks(ask);
  beginPicture(lockTime);
  beginQueries(() => safely(show));
  await beginSetup(() => safely(show));
  watchJobs(drawSetup, jobEnded);
  await show();
  document.body.dataset.ready = "true";
}

window.addEventListener("hashchange", () => safely(async () => {
  readAddress();
  await refresh();
  await show();
}));
let width = innerWidth;
window.addEventListener("resize", () => {
  if (innerWidth === width || $("#table").hidden) return;
  width = innerWidth;
  draw();
});
safely(begin);
