// Steps 1 to 3: data, classifier, explainer. A step that is done shrinks to one line with a button to change it.

import { get, post, remove, upload } from "./api.js";
import { $, el, notice, options, percent } from "./dom.js";
import { jobCards, look } from "./jobs.js";
import { clearLimits, known, set, state } from "./state.js";

export const METHODS = {
  sparce: "SPARCE", nearest: "Nearest recording", ics: "Search (ICS)", countergan: "CounteRGAN", gan: "GAN",
};
export const methodName = (method) => METHODS[method] ?? method;
const EFFORT = [["default", "Thorough: minutes"], ["tiny", "Quick try: seconds"]];
const BEST = { classifier: "bilstm", explainer: "sparce" };
const FORM = "series,time,label,elbow,wrist\na,0,calm,0.1,2.0\na,1,calm,0.2,2.1\nb,0,brisk,0.0,0.3";

const lists = { datasets: [], classifiers: [], explainers: [] };
const open = { dataset: false, classifier: false, explainer: false };
let changed = () => {};
let busy = ""; // words for what the data step is waiting for

export const explainersHere = () => lists.explainers.filter((e) => e.classifier === state.classifier);

export async function beginSetup(onChange) {
  changed = onChange;
  await refresh();
}

export async function refresh() {
  [lists.datasets, lists.classifiers, lists.explainers] = await Promise.all(
    [get("/datasets"), get("/classifiers"), get("/explainers")],
  );
  known.dataset = lists.datasets.find((d) => d.id === state.dataset) ?? null;
  known.classifier = lists.classifiers.find((c) => c.id === state.classifier && c.dataset === state.dataset) ?? null;
  known.explainer = explainersHere().find((e) => e.id === state.explainer) ?? null;
  const lost = {};
  if (!known.dataset) lost.dataset = null;
  if (!known.classifier) lost.classifier = null;
  if (!known.explainer) lost.explainer = null;
  if (state.compare && !explainersHere().some((e) => e.id === state.compare)) lost.compare = null;
  set(lost);
}

// A training has ended: what it made is chosen, where the page still stands at the step it was for.
export async function jobEnded(job) {
  if (job.state !== "done") return;
  await refresh();
  if (job.kind === "classifier" && job.parent === state.dataset) await choose("classifier", job.result);
  else if (job.kind === "explainer" && job.parent === state.classifier) {
    if (!state.explainer || open.explainer) await choose("explainer", job.result);
    else await changed();
  }
}

async function choose(kind, id) {
  notice("");
  if (kind === "dataset") {
    clearLimits();
    set({ dataset: id, classifier: null, explainer: null, row: null, target: null, compare: null, shown: 0 });
    const own = lists.classifiers.filter((c) => c.dataset === id).at(-1);
    if (own) set({ classifier: own.id });
  }
  if (kind === "classifier") set({ classifier: id, explainer: null, compare: null, target: null, shown: 0 });
  if (kind === "explainer") set({ explainer: id, compare: null, shown: 0 });
  const here = explainersHere();
  if (kind !== "explainer" && state.classifier && here.length) set({ explainer: here.at(-1).id });
  open[kind] = false;
  await refresh();
  await changed();
}

async function attempt(words, work) {
  busy = words;
  notice("");
  drawSetup();
  try {
    return await work();
  } catch (error) {
    notice(error.message);
    return null;
  } finally {
    busy = "";
    drawSetup();
  }
}

export function openDataset(name) {
  return attempt(`Opening ${name}…`, async () => {
    const record = await post("/datasets", { name });
    await refresh();
    await choose("dataset", record.id);
  });
}

function uploadFile(file) {
  if (!file) return null;
  if (file.size > known.status.upload_bytes) {
    notice(`${file.name} has ${(file.size / 2 ** 20).toFixed(0)} MiB; at most ${known.status.upload_bytes / 2 ** 20} MiB can be uploaded.`);
    return null;
  }
  return attempt(`Reading ${file.name}…`, async () => {
    const record = await upload(file);
    await refresh();
    await choose("dataset", record.id);
  });
}

async function train(kind, request) {
  notice("");
  try {
    await post(kind === "classifier" ? "/classifiers" : "/explainers", request);
  } catch (error) {
    notice(error.message);
    return;
  }
  await look();
}

async function discard(kind, id, name) {
  if (!confirm(`Remove ${name} from the workspace? This cannot be undone.`)) return;
  try {
    await remove(`/${kind}s/${id}`);
  } catch (error) {
    notice(error.message);
    return;
  }
  await refresh();
  await changed();
}

export function drawSetup() {
  const focused = document.activeElement?.id;
  draw("data", "dataset", known.dataset, datasetLine, datasetChoices, true);
  draw("classifier", "classifier", known.classifier, classifierLine, classifierChoices, known.dataset);
  draw("explainer", "explainer", known.explainer, explainerLine, explainerChoices, known.classifier);
  if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus();
}

function draw(step, kind, record, line, choices, ready) {
  const card = $(`#step-${step}`);
  card.classList.toggle("done", Boolean(record));
  card.classList.toggle("waiting", !ready);
  const chosen = $(".chosen", card);
  chosen.hidden = !record;
  if (record) {
    const id = `change-${kind}`;
    const button = el("button", {
      type: "button", class: "plain", id, "aria-expanded": String(open[kind]),
      onclick: () => { open[kind] = !open[kind]; drawSetup(); },
    }, open[kind] ? "Close" : "Change", el("span", { class: "for-ears" }, ` ${step}`));
    chosen.replaceChildren(line(record), button);
  }
  const place = $(".choices", card);
  // Redrawn while a training is watched: what the person has chosen but not used yet stays as it is.
  const values = Object.fromEntries([...place.querySelectorAll("select[id]")].map((s) => [s.id, s.value]));
  place.replaceChildren(...(ready ? choices(open[kind] || !record) : []));
  for (const [id, value] of Object.entries(values)) {
    const select = document.getElementById(id);
    if (!select || select.value === value || ![...select.options].some((o) => o.value === value)) continue;
    select.value = value;
    select.dispatchEvent(new Event("change"));
  }
}

const counted = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

function datasetLine(d) {
  const seconds = d.sampling_rate ? `, ${(d.n_steps / d.sampling_rate).toPrecision(2)} s` : "";
  return el("div", {}, el("strong", {}, d.name), el("br"), el("small", {},
    `${counted(d.n_train + d.n_test, "recording")}, ${counted(d.feature_names.length, "feature")}, `
    + `${d.n_steps} steps${seconds}. Classes: ${d.class_names.join(", ")}.`));
}

function classifierLine(c) {
  return el("div", {}, el("strong", {}, c.architecture), el("br"), el("small", {},
    `right for ${percent(c.test_accuracy)} of recordings it has not seen${c.preset === "tiny" ? "; quick try" : ""}.`));
}

function explainerLine(e) {
  return el("div", {}, el("strong", {}, methodName(e.method)), el("br"),
    el("details", {}, el("summary", { class: "about" }, e.preset === "tiny" ? "quick try; how good it is" : "how good it is"),
      el("p", { class: "about" }, e.summary)));
}

function picker(id, label, entries, chosen) {
  const select = el("select", { id });
  options(select, entries, chosen);
  return [select, el("label", { for: id }, label, select)];
}

// A choice among things of the catalog, with what is chosen described below it.
function described(id, label, entries, chosen, name = (text) => text) {
  const [select, shown] = picker(id, label, entries.map((e) => [e.name, name(e.name)]), chosen);
  const about = el("p", { class: "about", id: `${id}-about` });
  const tell = () => { about.textContent = entries.find((e) => e.name === select.value)?.about ?? ""; };
  select.setAttribute("aria-describedby", about.id);
  select.addEventListener("change", tell);
  tell();
  return [select, el("div", {}, shown, about)];
}

function having(kind, title, records, name, button) {
  if (!records.length) return null;
  const [select, label] = picker(`have-${kind}`, title, records.map((r) => [r.id, name(r)]), state[kind] ?? records.at(-1).id);
  const use = el("button", { type: "button", onclick: () => choose(kind, select.value) }, button);
  const gone = el("button", {
    type: "button", class: "plain",
    onclick: () => discard(kind, select.value, select.selectedOptions[0].textContent),
  }, "Remove");
  return el("div", { class: "group" }, label, el("div", { class: "row" }, use, gone));
}

function datasetChoices(wanted) {
  if (busy) return [el("p", { class: "about", role: "status" }, busy), el("progress", { "aria-label": busy })];
  if (!wanted) return [];
  const [select, label] = described("builtin", "Built in", known.catalog.datasets, "catching");
  const input = el("input", { type: "file", id: "upload", accept: ".csv,.npz", onchange: (event) => uploadFile(event.target.files[0]) });
  const drop = el("div", {
    class: "drop",
    ondragover: (event) => { event.preventDefault(); drop.classList.add("over"); },
    ondragleave: () => drop.classList.remove("over"),
    ondrop: (event) => { event.preventDefault(); drop.classList.remove("over"); uploadFile(event.dataTransfer.files[0]); },
  }, el("label", { for: "upload" }, "Your own file, .csv or .npz"), input);
  return [
    having("dataset", "In the workspace", lists.datasets, (d) => `${d.name}, ${counted(d.n_train + d.n_test, "recording")}`, "Use"),
    el("div", { class: "group" }, label, el("div", { class: "row" },
      el("button", { type: "button", onclick: () => openDataset(select.value) }, "Open"))),
    el("div", { class: "group" }, drop, el("details", {}, el("summary", { class: "about" }, "What the file should look like"),
      el("pre", { class: "form" }, FORM),
      el("p", { class: "about" }, "One row per recording and time step. It stays in the studio's workspace on this machine."))),
  ].filter(Boolean);
}

function training(kind, title, entries, label, button, start) {
  const [what, first] = described(`new-${kind}`, label, entries, BEST[kind], kind === "explainer" ? methodName : undefined);
  const [effort, second] = picker(`effort-${kind}`, "Effort", EFFORT, "default");
  const go = el("button", { type: "button", class: "primary", onclick: () => start(what.value, effort.value) }, button);
  return el("div", { class: "group" }, el("h3", {}, title), first, second, el("div", { class: "row" }, go));
}

function classifierChoices(wanted) {
  const cards = jobCards("classifier", state.dataset);
  if (!wanted || cards.some((card) => !card.matches(".failed, .cancelled"))) return cards;
  const here = lists.classifiers.filter((c) => c.dataset === state.dataset);
  return [
    ...cards,
    having("classifier", "Trained already", here, (c) => `${c.architecture}, ${percent(c.test_accuracy)} right${c.preset === "tiny" ? ", quick" : ""}`, "Use"),
    training("classifier", "Train a classifier", known.catalog.classifiers, "Kind", "Train",
      (architecture, preset) => train("classifier", { dataset: state.dataset, architecture, preset })),
  ].filter(Boolean);
}

function explainerChoices(wanted) {
  const cards = jobCards("explainer", state.classifier);
  if (!wanted || cards.some((card) => !card.matches(".failed, .cancelled"))) return cards;
  return [
    ...cards,
    having("explainer", "Fitted already", explainersHere(), (e) => `${methodName(e.method)}${e.preset === "tiny" ? ", quick" : ""} (${e.id.slice(-6)})`, "Use"),
    training("explainer", "Fit an explainer", known.catalog.explainers, "Method", "Fit",
      (method, preset) => train("explainer", { classifier: state.classifier, method, preset })),
  ].filter(Boolean);
}
