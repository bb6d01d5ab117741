// Steps 1 to 3: data, classifier, explainer. A finished step is shown as one line with a button to change it.

import { get, post, remove, upload } from "./api.js";
import { $, counted, el, notice, options, percent } from "./dom.js";
import { jobCards, poll } from "./jobs.js";
import { act, known, NO_LIMITS, NOT_DRAWN, set, state } from "./state.js";

export const METHODS = {
  sparcets: "sparcets", sparce: "SPARCE", nearest: "Nearest recording", ics: "Search (ICS)", countergan: "CounteRGAN", gan: "GAN",
};
export const methodName = (method) => (Object.hasOwn(METHODS, method) ? METHODS[method] : method);
const EFFORT = [["default", "Thorough: minutes"], ["tiny", "Quick try: seconds"]];
const DEFAULTS = { classifier: "bilstm", explainer: "sparcets" };
const CSV_EXAMPLE = "series,time,label,elbow,wrist\na,0,calm,0.1,2.0\na,1,calm,0.2,2.1\nb,0,brisk,0.0,0.3";

const lists = { datasets: [], classifiers: [], explainers: [] };
const open = { dataset: false, classifier: false, explainer: false };
let onChange = () => {};
let busy = ""; // description of what the data step is waiting for

export const currentExplainers = () => lists.explainers.filter((e) => e.classifier === state.classifier);

export async function initSetup(listener) {
  onChange = listener;
  await refresh();
}

const NAMES = { dataset: "data set", classifier: "classifier", explainer: "explainer" };

// Loads what the workspace holds. What the state names and the workspace lacks is left out, which is said.
export async function refresh() {
  [lists.datasets, lists.classifiers, lists.explainers] = await Promise.all(
    [get("/datasets"), get("/classifiers"), get("/explainers")],
  );
  known.dataset = lists.datasets.find((d) => d.id === state.dataset) ?? null;
  known.classifier = lists.classifiers.find((c) => c.id === state.classifier && c.dataset === state.dataset) ?? null;
  known.explainer = currentExplainers().find((e) => e.id === state.explainer) ?? null;
  const lacking = Object.keys(NAMES).filter((kind) => state[kind] && !known[kind]);
  const missing = Object.fromEntries(Object.keys(NAMES).filter((kind) => !known[kind]).map((kind) => [kind, null]));
  if (state.compare && !currentExplainers().some((e) => e.id === state.compare)) missing.compare = null;
  if (lacking.length) notice(`The ${NAMES[lacking[0]]} “${state[lacking[0]]}” is not in this workspace. It was removed, or the link is of another workspace.`);
  if (Object.entries(missing).some(([name, value]) => state[name] !== value)) set(missing);
  if (known.dataset && known.skeleton?.dataset !== known.dataset.id) {
    known.skeleton = { dataset: known.dataset.id, ...(await get(`/datasets/${known.dataset.id}/skeleton`)) };
  }
}

// A job has ended: its result is selected if the page is still at that step.
export async function jobEnded(job) {
  if (job.state !== "done") return;
  await refresh();
  if (job.kind === "classifier" && job.parent === state.dataset) await choose("classifier", job.result);
  else if (job.kind === "explainer" && job.parent === state.classifier) {
    if (!state.explainer || open.explainer) await choose("explainer", job.result);
    else await onChange();
  }
}

async function choose(kind, id) {
  notice("");
  if (kind === "dataset") {
    act({ ...NO_LIMITS, ...NOT_DRAWN, dataset: id, classifier: null, explainer: null, row: null, target: null, sparsity: null, compare: null, shown: 0, selected: [], source: null });
    const latest = lists.classifiers.filter((c) => c.dataset === id).at(-1);
    if (latest) set({ classifier: latest.id });
  }
  if (kind === "classifier") act({ classifier: id, explainer: null, compare: null, target: null, sparsity: null, shown: 0 });
  if (kind === "explainer") act({ explainer: id, compare: null, sparsity: null, shown: 0 });
  const fitted = currentExplainers();
  if (kind !== "explainer" && state.classifier && fitted.length) set({ explainer: fitted.at(-1).id });
  open[kind] = false;
  await refresh();
  await onChange();
}

async function attempt(description, work) {
  busy = description;
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
    const record = await upload("/datasets/upload", file);
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
  await poll();
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
  await onChange();
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
    }, open[kind] ? "Close" : "Change", el("span", { class: "sr-only" }, ` ${step}`));
    chosen.replaceChildren(line(record), button);
  }
  const container = $(".choices", card);
  // Redrawn while jobs are polled: selections that were not submitted yet are kept.
  const values = Object.fromEntries([...container.querySelectorAll("select[id]")].map((s) => [s.id, s.value]));
  container.replaceChildren(...(ready ? choices(open[kind] || !record) : []));
  for (const [id, value] of Object.entries(values)) {
    const select = document.getElementById(id);
    if (!select || select.value === value || ![...select.options].some((o) => o.value === value)) continue;
    select.value = value;
    select.dispatchEvent(new Event("change"));
  }
}

function datasetLine(d) {
  const seconds = d.sampling_rate ? `, ${(d.n_steps / d.sampling_rate).toPrecision(2)} s` : "";
  return el("div", {}, el("strong", {}, d.name), el("br"), el("small", {},
    `${counted(d.n_train + d.n_test, "recording")}, ${counted(d.feature_names.length, "feature")}, `
    + `${d.padded ? "up to " : ""}${d.n_steps} steps${seconds}. Classes: ${d.class_names.join(", ")}.`));
}

function classifierLine(c) {
  return el("div", {}, el("strong", {}, c.architecture), el("br"), el("small", {},
    `${c.own ? "your own model; " : ""}test accuracy ${percent(c.test_accuracy)}${c.preset === "tiny" && !c.own ? "; quick try" : ""}.`));
}

function explainerLine(e) {
  return el("div", {}, el("strong", {}, methodName(e.method)), el("br"),
    ...(e.doubts ?? []).map((doubt) => el("p", { class: "careful", role: "note" }, el("b", {}, "Careful: "), `${doubt}.`)),
    el("details", {}, el("summary", { class: "about" }, e.preset === "tiny" ? "Quality (quick try)" : "Quality"),
      el("p", { class: "about" }, e.summary)));
}

function picker(id, label, entries, chosen) {
  const select = el("select", { id });
  options(select, entries, chosen);
  return [select, el("label", { for: id }, label, select)];
}

// A selection from the catalog, with the description of the selected entry below it.
function described(id, label, entries, chosen, name = (text) => text) {
  const [select, shown] = picker(id, label, entries.map((e) => [e.name, name(e.name)]), chosen);
  const about = el("p", { class: "about", id: `${id}-about` });
  const update = () => { about.textContent = entries.find((e) => e.name === select.value)?.about ?? ""; };
  select.setAttribute("aria-describedby", about.id);
  select.addEventListener("change", update);
  update();
  return [select, el("div", {}, shown, about)];
}

function existing(kind, title, records, name, button) {
  if (!records.length) return null;
  const [select, label] = picker(`have-${kind}`, title, records.map((r) => [r.id, name(r)]), state[kind] ?? records.at(-1).id);
  const use = el("button", { type: "button", onclick: () => choose(kind, select.value) }, button);
  const discardButton = el("button", {
    type: "button", class: "plain",
    onclick: () => discard(kind, select.value, select.selectedOptions[0].textContent),
  }, "Remove");
  return el("div", { class: "group" }, label, el("div", { class: "row" }, use, discardButton));
}

function datasetChoices(expanded) {
  if (busy) return [el("p", { class: "about", role: "status" }, busy), el("progress", { "aria-label": busy })];
  if (!expanded) return [];
  const [select, label] = described("builtin", "Built in", known.catalog.datasets, "catching");
  const input = el("input", { type: "file", id: "upload", accept: ".csv,.npz", onchange: (event) => uploadFile(event.target.files[0]) });
  const drop = el("div", {
    class: "drop",
    ondragover: (event) => { event.preventDefault(); drop.classList.add("over"); },
    ondragleave: () => drop.classList.remove("over"),
    ondrop: (event) => { event.preventDefault(); drop.classList.remove("over"); uploadFile(event.dataTransfer.files[0]); },
  }, el("label", { for: "upload" }, "Your own file, .csv or .npz"), input);
  return [
    existing("dataset", "In the workspace", lists.datasets, (d) => `${d.name}, ${counted(d.n_train + d.n_test, "recording")}`, "Use"),
    el("div", { class: "group" }, label, el("div", { class: "row" },
      el("button", { type: "button", onclick: () => openDataset(select.value) }, "Open"))),
    el("div", { class: "group" }, drop, el("details", {}, el("summary", { class: "about" }, "File format"),
      el("pre", { class: "example" }, CSV_EXAMPLE),
      el("p", { class: "about" }, "One row per recording and time step. The file is stored in the studio's workspace on this machine."))),
  ].filter(Boolean);
}

// A model of the user's own is offered first, and used as it is: there is nothing to train.
function newModel(kind, title, entries, label, button, start) {
  const own = entries.find((entry) => entry.own);
  const [name, first] = described(`new-${kind}`, label, entries, own?.name ?? DEFAULTS[kind], kind === "explainer" ? methodName : undefined);
  const [effort, second] = picker(`effort-${kind}`, "Effort", EFFORT, "default");
  const go = el("button", { type: "button", class: "primary", onclick: () => start(name.value, effort.value) }, button);
  const update = () => {
    const isOwn = Boolean(own) && name.value === own.name;
    second.hidden = isOwn;
    go.textContent = isOwn ? "Use this model" : button;
  };
  name.addEventListener("change", update);
  update();
  return el("div", { class: "group" }, el("h3", {}, title), first, second, el("div", { class: "row" }, go));
}

function classifierChoices(expanded) {
  const cards = jobCards("classifier", state.dataset);
  if (!expanded || cards.some((card) => !card.matches(".ended"))) return cards;
  const trained = lists.classifiers.filter((c) => c.dataset === state.dataset);
  return [
    ...cards,
    existing("classifier", "Already trained", trained, (c) => `${c.architecture}, accuracy ${percent(c.test_accuracy)}${c.preset === "tiny" ? ", quick" : ""}`, "Use"),
    newModel("classifier", known.catalog.classifiers.some((c) => c.own) ? "Your model, or train a classifier" : "Train a classifier", known.catalog.classifiers, "Architecture", "Train",
      (architecture, preset) => train("classifier", { dataset: state.dataset, architecture, preset })),
  ].filter(Boolean);
}

function explainerChoices(expanded) {
  const cards = jobCards("explainer", state.classifier);
  if (!expanded || cards.some((card) => !card.matches(".ended"))) return cards;
  return [
    ...cards,
    existing("explainer", "Already fitted", currentExplainers(), (e) => `${methodName(e.method)}${e.preset === "tiny" ? ", quick" : ""} (${e.id.slice(-6)})`, "Use"),
    newModel("explainer", "Fit an explainer", known.catalog.explainers, "Method", "Fit",
      (method, preset) => train("explainer", { classifier: state.classifier, method, preset })),
  ].filter(Boolean);
}
