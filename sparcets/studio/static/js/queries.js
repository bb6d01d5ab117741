// Step 4: the list of recordings with the classifier's predictions; some of them can be selected for a report.

import { get, upload } from "./api.js";
import { $, el, notice, options, percent } from "./dom.js";
import { act, known, NOT_DRAWN, set, state } from "./state.js";

const PAGE_SIZE = 100;
const TYPING = 250; // milliseconds after the last key until the search begins
let list = [];
let total = 0;
let counts = {};
let listedClassifier = null;
let onPick = () => {};
let onSelect = () => {};
let timer = null;

export function initQueries(pickListener, selectListener) {
  onPick = pickListener;
  onSelect = selectListener;
}

export async function drawQueries() {
  const card = $("#step-query");
  const container = $(".choices", card);
  card.classList.toggle("waiting", !known.classifier);
  card.classList.toggle("done", Boolean(known.classifier) && state.row !== null);
  if (!known.classifier) {
    container.replaceChildren();
    listedClassifier = null;
    return;
  }
  if (listedClassifier !== known.classifier.id) {
    listedClassifier = known.classifier.id;
    build(container);
    await load();
  }
  mark();
}

function build(container) {
  const predicted = el("select", { id: "filter-class", onchange: load });
  options(predicted, [["", "any"], ...known.dataset.class_names.map((name) => [name, name])], "");
  const part = el("select", { id: "filter-part", onchange: load });
  options(part, [["", "all"], ["test", "held out"], ["train", "trained on"], ["new", "new"]], "");
  const search = el("input", { type: "search", id: "search", placeholder: "id or subject", oninput: () => { clearTimeout(timer); timer = setTimeout(load, TYPING); } });
  const box = el("ul", { id: "queries", role: "listbox", tabindex: "0", "aria-label": "Recordings", "aria-describedby": "queries-hint", onkeydown: onKey });
  const input = el("input", { type: "file", id: "add-recordings", accept: ".csv,.npz", onchange: (event) => add(event.target) });
  container.replaceChildren(
    el("div", { class: "filters" },
      el("label", { for: "search" }, "Search", search),
      el("label", { for: "filter-class" }, "Predicted class", predicted),
      el("label", { for: "filter-part" }, "Show", part),
      el("label", {}, el("input", { type: "checkbox", id: "filter-wrong", onchange: load }), " only misclassified")),
    box,
    el("p", { class: "sr-only", id: "queries-hint" }, "Arrow keys choose a recording, space selects it for a report."),
    el("div", { class: "row spread" }, el("p", { class: "about", id: "queries-count" }),
      el("button", { type: "button", class: "plain", id: "queries-more", hidden: true, onclick: () => load(true) }, "Show more")),
    el("details", { id: "add" }, el("summary", { class: "about" }, "Add recordings without labels"),
      el("label", { for: "add-recordings" }, "A .csv or .npz file with the same features", input)));
}

async function add(input) {
  const [picked] = input.files;
  if (!picked) return;
  notice("");
  try {
    const added = await upload(`/datasets/${state.dataset}/recordings`, picked);
    $("#filter-part").value = "new";
    $("#search").value = "";
    await load();
    const first = list.find((query) => query.row >= added.first_row);
    if (first) pick(first);
  } catch (error) {
    notice(error.message);
  }
  input.value = "";
}

async function load(more) {
  const offset = more === true ? list.length : 0;
  const filter = new URLSearchParams({ offset, limit: PAGE_SIZE });
  const given = { predicted: $("#filter-class").value, part: $("#filter-part").value, search: $("#search").value.trim() };
  for (const [name, value] of Object.entries(given)) if (value) filter.set(name, value);
  if ($("#filter-wrong").checked) filter.set("wrong", "true");
  $("#queries-count").textContent = "Loading predictions…";
  try {
    const page = await get(`/classifiers/${known.classifier.id}/queries?${filter}`);
    [list, total, counts] = [[...list.slice(0, offset), ...page.items], page.total, page.counts];
  } catch (error) {
    if (error.code !== "gone") notice(error.message);
    [list, total] = [[], 0];
  }
  $("#queries").replaceChildren(...list.map(item));
  const all = counts.test + counts.train + counts.new;
  $("#queries-count").textContent = total === 0 ? "No matching recordings."
    : `${total > list.length ? `${list.length} of ` : ""}${total} recordings${total < all ? ` (${all} in all)` : ""}`;
  $("#queries-more").hidden = total <= list.length;
  if (state.row === null && list.length) pick(list[0], set);
  mark();
}

// A recording by its id, else its number, and by the recorded person, where the data name them.
export const fullName = ({ id, subject, row }) => [id ?? `#${row}`, subject === null ? null : `subject ${subject}`].filter((part) => part !== null).join(", ");

// Where a recording comes from, unless it is a held-out one. Of a user's own model it is not known what it was trained on.
export const partText = (part) => ({ test: "held out", train: known.classifier?.own ? "the explainer was fitted on it" : "the model was trained on it", new: "new" })[part];

function item(query) {
  const name = fullName(query);
  const notes = [query.part === "test" ? null : partText(query.part), query.label === null ? null : query.label === query.predicted ? null : `label: ${query.label}`];
  return el("li", {
    role: "option", id: `query-${query.row}`, "aria-selected": "false", "aria-checked": String(state.selected.includes(query.row)), onclick: () => pick(query),
  },
    el("span", { class: "check", title: "Select for a report", onclick: (event) => { event.stopPropagation(); select(query.row); } }),
    el("span", { class: "id", title: name }, name),
    el("span", { class: "p" }, percent(query.probability)),
    el("span", { class: "predicted" }, query.predicted),
    ...notes.filter(Boolean).map((note) => el("span", { class: note.startsWith("label") ? "wrong" : `part ${query.part}` }, note)));
}

function pick(query, change = act) {
  known.query = { ...query, classifier: known.classifier.id };
  const target = state.target === query.predicted ? null : state.target;
  change({ view: "recording", row: query.row, target, sparsity: null, shown: 0, ...NOT_DRAWN });
  mark();
  onPick();
}

export function select(row) {
  set({ selected: state.selected.includes(row) ? state.selected.filter((r) => r !== row) : [...state.selected, row] });
  mark();
  onSelect();
}

export function mark() {
  const box = $("#queries");
  if (!box) return;
  const chosen = new Set(state.selected.map((row) => `query-${row}`));
  for (const entry of box.children) {
    entry.setAttribute("aria-selected", String(entry.id === `query-${state.row}`));
    entry.setAttribute("aria-checked", String(chosen.has(entry.id)));
  }
  const option = document.getElementById(`query-${state.row}`);
  if (!option) {
    box.removeAttribute("aria-activedescendant");
    return;
  }
  box.setAttribute("aria-activedescendant", option.id);
  const top = option.offsetTop - box.offsetTop;
  if (top < box.scrollTop || top + option.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = top - 60;
}

function onKey(event) {
  if (event.key === " " && state.row !== null) {
    event.preventDefault();
    select(state.row);
    return;
  }
  const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity, PageDown: 8, PageUp: -8 }[event.key];
  if (step === undefined || !list.length) return;
  event.preventDefault();
  const current = list.findIndex((query) => query.row === state.row);
  pick(list[Math.max(0, Math.min(list.length - 1, current + step))]);
}
