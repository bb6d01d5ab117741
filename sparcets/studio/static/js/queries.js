// Step 4: the list of recordings with the classifier's predictions.

import { get } from "./api.js";
import { $, el, notice, options, percent } from "./dom.js";
import { known, set, state } from "./state.js";

const PAGE_SIZE = 100;
let list = [];
let total = 0;
let listedClassifier = null;
let onPick = () => {};

export function initQueries(listener) {
  onPick = listener;
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
  const box = el("ul", { id: "queries", role: "listbox", tabindex: "0", "aria-label": "Recordings", onkeydown: onKey });
  container.replaceChildren(
    el("div", { class: "filters" },
      el("label", { for: "filter-class" }, "Predicted class", predicted),
      el("label", {}, el("input", { type: "checkbox", id: "filter-wrong", onchange: load }), " only misclassified")),
    box,
    el("div", { class: "row spread" }, el("p", { class: "about", id: "queries-count" }),
      el("button", { type: "button", class: "plain", id: "queries-more", hidden: true, onclick: () => load(true) }, "Show more")));
}

async function load(more) {
  const offset = more === true ? list.length : 0;
  const predicted = $("#filter-class").value;
  const wrong = $("#filter-wrong").checked;
  const filter = `${predicted ? `&predicted=${encodeURIComponent(predicted)}` : ""}${wrong ? "&wrong=true" : ""}`;
  $("#queries-count").textContent = "Loading predictions…";
  try {
    const page = await get(`/classifiers/${known.classifier.id}/queries?offset=${offset}&limit=${PAGE_SIZE}${filter}`);
    [list, total] = [[...list.slice(0, offset), ...page.items], page.total];
  } catch (error) {
    notice(error.message);
    [list, total] = [[], 0];
  }
  $("#queries").replaceChildren(...list.map(item));
  $("#queries-count").textContent = total === 0 ? "No matching recordings."
    : total > list.length ? `${list.length} of ${total} test recordings` : `${total} test recordings`;
  $("#queries-more").hidden = total <= list.length;
  if (state.row === null && list.length) pick(list[0]);
  mark();
}

// The id of a recording and the recorded person, where the data name them.
export const fullName = ({ id, subject }) => [id, subject === null ? null : `subject ${subject}`].filter((part) => part !== null).join(", ");

function item(query) {
  const correct = query.label === query.predicted;
  return el("li", { role: "option", id: `query-${query.row}`, "aria-selected": "false", onclick: () => pick(query) },
    el("span", { class: "nr" }, `#${query.row}`),
    el("span", {}, query.predicted),
    el("span", { class: "p" }, percent(query.probability)),
    fullName(query) ? el("span", { class: "name", title: fullName(query) }, fullName(query)) : null,
    correct ? null : el("span", { class: "wrong" }, `label: ${query.label}`));
}

function pick(query) {
  known.query = query;
  const target = state.target === query.predicted ? null : state.target;
  set({ row: query.row, target, shown: 0 });
  mark();
  onPick();
}

function mark() {
  const box = $("#queries");
  for (const item of box.children) item.setAttribute("aria-selected", String(item.id === `query-${state.row}`));
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
  const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity, PageDown: 8, PageUp: -8 }[event.key];
  if (step === undefined || !list.length) return;
  event.preventDefault();
  const current = list.findIndex((query) => query.row === state.row);
  pick(list[Math.max(0, Math.min(list.length - 1, current + step))]);
}
