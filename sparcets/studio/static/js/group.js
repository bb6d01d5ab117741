// All recordings of a class together: the confusion table, every recording as a point, and what changes for all of them.

import { file, get, post } from "./api.js";
import { badge } from "./answers.js";
import { $, counted, el, notice, options, percent, short } from "./dom.js";
import { explainAll, save } from "./exports.js";
import { seconds, stepsToTime, timeUnit } from "./figure.js";
import { fullName } from "./queries.js";
import { act, explainRequest, known, NOT_DRAWN, set, state } from "./state.js";
import { colours } from "./theme.js";

const MARKERS = ["circle", "square", "diamond", "triangle-up", "cross", "star", "hexagon", "pentagon"];
const PARTS = [["test", "held out"], ["train", "trained on"], ["", "all"]];
const FEW = 0.1; // share of the answers below which a change is not in the map
const MOST = 500; // recordings of one group
let overview = null;
let overviewOf = null; // the classifier that it belongs to
let rows = [];
let result = null; // of the last group that was explained
let resultOf = null;
let running = false;
let stopped = false;
let part = "test";
let onOpen = () => {};

const PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c510a", "#7a7a7a"];

export async function drawGroup(listener) {
  onOpen = listener;
  const box = $("#group");
  if (!box.children.length || box.dataset.classifier !== state.classifier) build(box);
  if (overviewOf !== state.classifier) {
    overview = await get(`/classifiers/${state.classifier}/overview`);
    overviewOf = state.classifier;
  }
  const names = known.dataset.class_names;
  if (!names.includes(state.source)) set({ source: known.query?.predicted ?? names[0] });
  if (!names.includes(state.target) || state.target === state.source) set({ target: names.find((name) => name !== state.source) });
  drawConfusion();
  await drawPoints();
  await drawQuestion();
  drawResult();
}

function build(box) {
  box.dataset.classifier = state.classifier;
  box.replaceChildren(
    el("section", { class: "card", "aria-labelledby": "title-overview" },
      el("h2", { id: "title-overview" }, "What the model says of all recordings"),
      el("div", { class: "overview" },
        el("div", { id: "confusion" }),
        el("div", { id: "points-box" }, el("div", { id: "points", role: "img" }),
          el("p", { class: "about" }, "Every recording is a point; similar ones are close (principal components). Click one to open it.")))),
    el("section", { class: "card", "aria-labelledby": "title-group" },
      el("h2", { id: "title-group" }, "What changes for all of them"),
      el("div", { class: "controls" },
        el("label", { class: "control" }, "Predicted class", el("select", { id: "group-source", onchange: (event) => choose({ source: event.target.value }) })),
        el("label", { class: "control" }, "Target class", el("select", { id: "group-target", onchange: (event) => choose({ target: event.target.value }) })),
        el("label", { class: "control" }, "Recordings", el("select", { id: "group-part", onchange: (event) => { part = event.target.value; choose({}); } }))),
      el("div", { class: "row" },
        el("button", { type: "button", class: "primary", id: "group-go", onclick: start }),
        el("progress", { id: "group-progress", max: "1", hidden: true, "aria-label": "Explaining" }),
        el("span", { class: "about", id: "group-text" }))),
    el("div", { id: "group-result" }));
}

function choose(changes) {
  act(changes);
  stopped = true;
  drawGroup(onOpen).catch((error) => notice(error.message));
}

// Labels by predictions, for held-out recordings and for those the model was trained on; a cell chooses the class.
function drawConfusion() {
  const names = known.dataset.class_names;
  const table = (of, title) => {
    const cells = overview.confusion[of];
    if (!cells) return null;
    const right = cells.reduce((sum, row, i) => sum + row[i], 0);
    const all = cells.flat().reduce((sum, n) => sum + n, 0);
    return el("table", { class: "confusion" },
      el("caption", {}, `${title}: ${percent(right / all)} of ${all.toLocaleString("en")} right`),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "label ↓ predicted →"), ...names.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, ...cells.map((row, i) => el("tr", {}, el("th", { scope: "row" }, names[i]),
        ...row.map((n, k) => el("td", { class: n === 0 ? "none" : i === k ? "right" : "wrong", title: `label ${names[i]}, predicted ${names[k]}` }, String(n)))))));
  };
  $("#confusion").replaceChildren(...[table("test", "Held out"), table("train", known.classifier.own ? "Fitted on" : "Trained on"), table("new", "New")].filter(Boolean));
}

async function drawPoints() {
  const palette = colours();
  const names = known.dataset.class_names;
  const traces = names.map((name, k) => {
    const of = overview.predicted.flatMap((p, row) => (p === k ? [row] : []));
    const text = of.map((row) => {
      const label = overview.labels[row] < 0 ? "no label" : `label ${names[overview.labels[row]]}`;
      return `${(overview.names?.[row] ?? `#${row}`).replaceAll("<", "&lt;")}<br>${name} ${percent(overview.probability[row])}, ${label}, ${{ test: "held out", train: "trained on", new: "new" }[overview.parts[row]]}`;
    });
    const wrong = of.map((row) => overview.labels[row] >= 0 && overview.labels[row] !== k);
    return {
      x: of.map((row) => overview.x[row]), y: of.map((row) => overview.y[row]), text, customdata: of, name, mode: "markers", type: "scatter",
      hovertemplate: "%{text}<extra></extra>",
      marker: {
        color: PALETTE[k % PALETTE.length], size: 7, symbol: of.map((row) => MARKERS[k % MARKERS.length] + (overview.parts[row] === "train" ? "-open" : "")),
        opacity: 0.75, line: { color: wrong.map((is) => (is ? palette.ink : PALETTE[k % PALETTE.length])), width: wrong.map((is) => (is ? 2 : 0.8)) },
      },
    };
  });
  const plot = $("#points");
  await window.Plotly.react(plot, traces, {
    height: 360, margin: { l: 8, r: 8, t: 8, b: 8 }, paper_bgcolor: palette.card, plot_bgcolor: palette.card, font: { color: palette.soft },
    xaxis: { visible: false }, yaxis: { visible: false }, legend: { orientation: "h", y: -0.02 }, hovermode: "closest",
    hoverlabel: { bgcolor: palette.card, bordercolor: palette.soft, font: { color: palette.ink } }, dragmode: false,
  }, { displayModeBar: false, responsive: true });
  plot.setAttribute("aria-label", `${counted(overview.x.length, "recording")} as points, coloured by predicted class; open symbols: trained on; dark rim: misclassified`);
  if (!plot.dataset.listening) {
    plot.dataset.listening = "true";
    plot.on("plotly_click", (event) => open(event.points[0].customdata));
  }
}

function open(row) {
  act({ view: "recording", row, sparsity: null, shown: 0, ...NOT_DRAWN });
  onOpen();
}

const groupKey = () => JSON.stringify([state.explainer, state.source, state.target, part, explainRequest().constraints]);

async function drawQuestion() {
  const names = known.dataset.class_names;
  options($("#group-source"), names.map((name) => [name, name]), state.source);
  options($("#group-target"), names.filter((name) => name !== state.source).map((name) => [name, name]), state.target);
  options($("#group-part"), PARTS, part);
  const index = names.indexOf(state.source);
  rows = overview.predicted.flatMap((p, row) => (p === index && (!part || overview.parts[row] === part) ? [row] : [])).slice(0, MOST);
  if (running) return;
  $("#group-go").textContent = `Explain ${counted(rows.length, "recording")}: ${state.source} → ${state.target}`;
  $("#group-go").disabled = !rows.length;
  $("#group-text").textContent = rows.length ? "" : `The model predicts ${state.source} for none of these.`;
}

async function start() {
  if (running) {
    stopped = true;
    return;
  }
  [running, stopped] = [true, false];
  const [asked, key, bar] = [rows, groupKey(), $("#group-progress")];
  const change = { target: state.target, sparsity: null, answers: 1 };
  const began = performance.now();
  bar.hidden = false;
  let done = 0;
  try {
    $("#group-go").textContent = "Stop";
    await explainAll(asked, change, (n) => {
      done = n;
      bar.value = n / asked.length;
      const left = n ? ((performance.now() - began) / 1000 / n) * (asked.length - n) : null;
      $("#group-text").textContent = `${n} of ${asked.length} explained${left === null ? "" : `, about ${Math.ceil(left)} s left`}`;
    }, () => stopped);
    const explained = stopped ? asked.slice(0, done) : asked;
    if (explained.length && key === groupKey()) {
      result = await post("/groups", { ...explainRequest(), strokes: [], ...change, rows: explained });
      resultOf = key;
    }
  } catch (error) {
    if (error.code !== "gone") notice(error.message);
  }
  running = false;
  bar.hidden = true;
  await drawQuestion();
  drawResult();
  document.body.dataset.group = String(Number(document.body.dataset.group ?? 0) + 1);
}

function drawResult() {
  const box = $("#group-result");
  if (!result || resultOf !== groupKey()) {
    box.replaceChildren();
    return;
  }
  const { n, n_reached: reached, verdicts } = result;
  const share = (count) => `${count} of ${reached}`;
  box.replaceChildren(
    el("section", { class: "card" },
      el("h2", {}, `${state.source} → ${state.target}: ${counted(n, "recording")}`),
      el("p", { class: "row verdicts" }, ...known.catalog.verdicts.filter(({ word }) => verdicts[word]).map((verdict) => el("span", { title: verdict.meaning }, badge(verdict), ` ${verdicts[verdict.word]}`))),
      el("div", { id: "group-map", role: "img" }),
      el("p", { class: "about" }, `Mean change in standard deviations over the ${reached} answers that reach ${state.target}: red is higher, blue is lower. Blank: changed in fewer than ${percent(FEW)} of them.`),
      el("div", { class: "row" }, ...[["html", "Report (HTML)"], ["csv", "Table of changes (CSV)"], ["npz", "Explanations (NPZ)"]].map(([kind, label]) =>
        el("button", { type: "button", "data-kind": kind, onclick: (event) => exportGroup(kind, event.currentTarget) }, label)))),
    el("section", { class: "card" },
      el("h2", {}, "Most frequent changes"),
      result.patterns.length ? el("table", { class: "patterns" },
        el("thead", {}, el("tr", {}, el("th", {}, "what"), el("th", {}, "how"), el("th", {}, "by (median)"), el("th", {}, "answers"))),
        el("tbody", {}, ...result.patterns.map((p) => el("tr", {}, el("td", {}, p.what), el("td", {}, p.how), el("td", {}, `${short(p.amount)} ${p.unit}`.trim()),
          el("td", {}, el("meter", { min: "0", max: String(reached), value: String(p.count), "aria-label": p.what }), ` ${share(p.count)}`))))) : el("p", {}, "No two answers change the same.")),
    el("section", { class: "card" },
      el("h2", {}, "Exceptions"),
      result.exceptions.length ? el("ul", { class: "exceptions" }, ...result.exceptions.map((entry) => el("li", {},
        el("button", { type: "button", class: "plain", onclick: () => open(entry.row) }, fullName(entry)),
        badge(known.catalog.verdicts.find(({ word }) => word === entry.verdict)),
        el("span", {}, `${entry.why}.`)))) : el("p", {}, "None: no answer stands out from the others.")));
  drawMap();
}

function drawMap() {
  const palette = colours();
  const names = known.dataset.feature_names;
  const steps = result.change.length;
  const z = names.map((_, f) => result.change.map((step, t) => (result.share[t][f] >= FEW ? step[f] : null)));
  const most = Math.max(...z.flat().map((value) => Math.abs(value ?? 0))) || 1;
  const text = names.map((name, f) => Array.from({ length: steps }, (_, t) => `${name.replaceAll("<", "&lt;")}, ${seconds(t)} ${timeUnit()}<br>changed in ${percent(result.share[t][f])} of the answers<br>on average by ${(result.change[t][f]).toFixed(2)} standard deviations`));
  window.Plotly.react($("#group-map"), [{
    type: "heatmap", z, text, x: Array.from({ length: steps }, (_, t) => stepsToTime(t)), y: names.map((_, f) => f), zmin: -most, zmax: most, hovertemplate: "%{text}<extra></extra>",
    colorscale: [[0, "#053061"], [0.25, "#2b75b5"], [0.5, "#a6cfe4"], [0.5, "#f7bda1"], [0.75, "#cb4942"], [1, "#67001f"]],
    colorbar: { title: { text: "sd", side: "right" }, thickness: 10 }, hoverongaps: false,
  }], {
    height: 90 + 18 * names.length, margin: { l: 8, r: 8, t: 8, b: 44 }, paper_bgcolor: palette.card, plot_bgcolor: palette.card, font: { color: palette.soft, size: 11 },
    xaxis: { title: { text: `time (${timeUnit()})` }, fixedrange: true, showgrid: false, zeroline: false },
    // Numbers, not names: as names of categories, Plotly would leave out "constructor".
    yaxis: { autorange: "reversed", automargin: true, fixedrange: true, showgrid: false, zeroline: false, tickvals: names.map((_, f) => f), ticktext: names.map((name) => name.replaceAll("<", "&lt;")) },
    hoverlabel: { bgcolor: palette.card, bordercolor: palette.soft, font: { color: palette.ink } },
  }, { displayModeBar: false, responsive: true });
  $("#group-map").setAttribute("aria-label", `Map of mean changes over ${names.length} features and ${steps} steps; the table below lists the most frequent ones`);
}

async function exportGroup(kind, button) {
  button.disabled = true;
  try {
    const request = { ...explainRequest(), strokes: [], target: state.target, sparsity: null, answers: 1, rows: result.rows, shown: 0 };
    save(await file(`/exports/${kind}`, request), `${state.source}-to-${state.target}.${kind}`.replace(/[^\p{L}\p{N}_.-]+/gu, "_"));
  } catch (error) {
    if (error.code !== "gone") notice(error.message);
  }
  button.disabled = false;
}
