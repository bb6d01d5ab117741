// Entry point of the page: decides which part is shown and connects the modules.

import { get } from "./api.js";
import { $, el, notice } from "./dom.js";
import { draw, explain, initExplanation, openRecording } from "./explanation.js";
import { initExports } from "./exports.js";
import { initFigure } from "./figure.js";
import { initJobs } from "./jobs.js";
import { initLocks, lockTime } from "./locks.js";
import { initQueries, drawQueries } from "./queries.js";
import { initSetup, drawSetup, jobEnded, openDataset, refresh } from "./setup.js";
import { known, readUrl, state } from "./state.js";

const STEPS = [ // condition, title and text of the step to do next
  [() => !known.dataset, "Start with data",
    "A data set holds recordings over time, each with a label, such as the person or the activity. Open a built-in one, or upload your own. A classifier is then trained on it, and the studio shows what would have to change in a recording for the classifier to predict another class."],
  [() => !known.classifier, "Next: a classifier",
    "Choose an architecture at the left and train it: a quick try takes seconds, a thorough training a minute or two. The progress is shown, and you can cancel it."],
  [() => !known.explainer, "Next: an explainer",
    "It learns to generate counterfactuals: recordings changed so that the classifier predicts another class. “Nearest recording” needs no training and shows a real example; sparcets changes as little as possible. Fit one at the left; with two, you can compare them."],
  [() => state.row === null, "Choose a recording", "The list at the left shows recordings the classifier was not trained on, with its predictions."],
];

async function show() {
  drawSetup();
  await drawQueries();
  const missing = STEPS.find(([lacks]) => lacks());
  $("#empty").hidden = !missing;
  $("#table").hidden = Boolean(missing);
  if (missing) {
    $("#title-empty").textContent = missing[1];
    const start = missing === STEPS[0]
      ? el("button", { type: "button", class: "primary", onclick: () => openDataset("catching") }, "Open the simulated ball-catching data") : null;
    $("#empty-text").replaceChildren(el("p", {}, missing[2]), ...(start ? [start] : []));
    return;
  }
  await openRecording();
}

async function withNotice(work) {
  try {
    await work();
  } catch (error) {
    notice(error.message);
  }
}

async function init() {
  readUrl();
  [known.status, known.catalog] = await Promise.all([get("/status"), get("/catalog")]);
  initExplanation();
  initExports();
  initLocks(explain);
  initFigure(lockTime);
  initQueries(() => withNotice(show));
  await initSetup(() => withNotice(show));
  initJobs(drawSetup, jobEnded);
  await show();
  document.body.dataset.ready = "true";
}

window.addEventListener("hashchange", () => withNotice(async () => {
  readUrl();
  await refresh();
  await show();
}));
let width = innerWidth;
window.addEventListener("resize", () => {
  if (innerWidth === width || $("#table").hidden) return;
  width = innerWidth;
  draw();
});
withNotice(init);
