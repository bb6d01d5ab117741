// Entry point of the page: decides which part is shown and connects the modules.

import { get, logOut, onReturn } from "./api.js";
import { follow, initBody } from "./body.js";
import { initCurve } from "./curve.js";
import { $, el, notice } from "./dom.js";
import { draw, explain, initExplanation, openRecording } from "./explanation.js";
import { drawSelection, initExports } from "./exports.js";
import { initFigure } from "./figure.js";
import { drawGroup } from "./group.js";
import { initHand } from "./hand.js";
import { initJobs } from "./jobs.js";
import { askWindow, initLocks } from "./locks.js";
import { initQueries, drawQueries } from "./queries.js";
import { initSetup, drawSetup, jobEnded, openDataset, refresh } from "./setup.js";
import { act, known, readUrl, startHistory, state } from "./state.js";
import { onThemeChange } from "./theme.js";

const STEPS = [ // condition, title and text of the step to do next
  [() => !known.dataset, "Start with data",
    "A data set holds recordings over time, each with a label, such as the person or the activity. Open a built-in one, or upload your own. A classifier is then trained on it, and the studio shows what would have to change in a recording for the classifier to predict another class."],
  [() => !known.classifier, "Next: a classifier",
    "Choose an architecture at the left and train it: a quick try takes seconds, a thorough training a minute or two. The progress is shown, and you can cancel it."],
  [() => !known.explainer, "Next: an explainer",
    "It makes counterfactuals: recordings changed so that the classifier predicts another class. “Nearest recording” needs no training and answers with a real recording, except for what is locked. sparcets searches for few changes with which models of other kinds agree, too: it gives the smallest that it finds, and says if they do not. Fit one at the left; with two, you can compare them."],
  [() => state.view === "recording" && state.row === null, "Choose a recording", "The list at the left shows all recordings with the predictions of the classifier; those that it was trained on are marked."],
];

async function show() {
  drawSetup();
  await drawQueries();
  const missing = STEPS.find(([lacks]) => lacks());
  $("#empty").hidden = !missing;
  $("#views").hidden = !known.explainer;
  $("#table").hidden = Boolean(missing) || state.view !== "recording";
  $("#group").hidden = Boolean(missing) || state.view !== "group";
  for (const button of $("#views").children) button.setAttribute("aria-pressed", String(button.dataset.view === state.view));
  if (missing) {
    $("#title-empty").textContent = missing[1];
    const start = missing === STEPS[0]
      ? el("button", { type: "button", class: "primary", onclick: () => openDataset("catching") }, "Open the simulated ball-catching data") : null;
    $("#empty-text").replaceChildren(el("p", {}, missing[2]), ...(start ? [start] : []));
    return;
  }
  drawSelection();
  if (state.view === "group") await drawGroup(() => withNotice(show));
  else await openRecording();
}

async function withNotice(work) {
  try {
    await work();
  } catch (error) {
    if (error.code !== "gone") notice(error.message);
  }
}

async function start() {
  [known.status, known.catalog] = await Promise.all([get("/status"), get("/catalog")]);
  await initSetup(() => withNotice(show));
  initJobs(drawSetup, jobEnded);
  await show();
  document.body.dataset.ready = "true";
}

async function showUrl() {
  readUrl();
  notice("");
  await refresh();
  await show();
}

readUrl();
startHistory();
initExplanation();
initExports();
initBody();
initCurve(explain);
initLocks(explain);
initHand(explain);
initFigure(askWindow, follow);
initQueries(() => withNotice(show), drawSelection);
for (const button of $("#views").children) {
  button.addEventListener("click", () => { act({ view: button.dataset.view }); withNotice(show); });
}
$("#log-out").addEventListener("click", () => withNotice(logOut));
window.addEventListener("popstate", () => withNotice(showUrl));
// A studio that was not there when the page was opened, or that was started again.
onReturn(() => withNotice(document.body.dataset.ready ? async () => { await refresh(); drawSetup(); } : start));
let width = innerWidth;
window.addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  redraw();
});
onThemeChange(async () => {
  await redraw();
  document.body.dataset.themed = String(Number(document.body.dataset.themed ?? 0) + 1);
});

async function redraw() {
  if (!$("#table").hidden) await draw();
  if (!$("#group").hidden) await withNotice(show);
}

withNotice(start);
