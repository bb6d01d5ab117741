// Step 4: the list of recordings with what the classifier says of each.

import { get } from "./api.js";
import { $, el, notice, options, percent } from "./dom.js";
import { known, set, state } from "./state.js";

const PAGE = 100;
let list = [];
let total = 0;
let listedFor = null;
let picked = () => {};

export function beginQueries(onPick) {
  picked = onPick;
}

export async function drawQueries() {
  const card = $("#step-query");
  const place = $(".choices", card);
  card.classList.toggle("waiting", !known.classifier);
  card.classList.toggle("done", Boolean(known.classifier) && state.row !== null);
  if (!known.classifier) {
    place.replaceChildren();
    listedFor = null;
    return;
  }
  if (listedFor !== known.classifier.id) {
    listedFor = known.classifier.id;
    build(place);
    await load();
  }
  mark();
}

function build(place) {
  const said = el("select", { id: "filter-class", onchange: load });
  options(said, [["", "anything"], ...known.dataset.class_names.map((name) => [name, name])], "");
  const box = el("ul", { id: "queries", role: "listbox", tabindex: "0", "aria-label": "Recordings", onkeydown: onKey });
  place.replaceChildren(
    el("div", { class: "filters" },
      el("label", { for: "filter-class" }, "The model says", said),
      el("label", {}, el("input", { type: "checkbox", id: "filter-wrong", onchange: load }), " only where it is wrong")),
    box,
    el("div", { class: "row spread" }, el("p", { class: "about", id: "queries-count" }),
      el("button", { type: "button", class: "plain", id: "queries-more", hidden: true, onclick: () => load(true) }, "Show more")));
}

async function load(more) {
  const offset = more === true ? list.length : 0;
  const said = $("#filter-class").value;
  const wrong = $("#filter-wrong").checked;
  const filter = `${said ? `&predicted=${encodeURIComponent(said)}` : ""}${wrong ? "&wrong=true" : ""}`;
  $("#queries-count").textContent = "Asking the classifier…";
  try {
    const page = await get(`/classifiers/${known.classifier.id}/queries?offset=${offset}&limit=${PAGE}${filter}`);
    [list, total] = [[...list.slice(0, offset), ...page.items], page.total];
  } catch (error) {
    notice(error.message);
    [list, total] = [[], 0];
  }
  $("#queries").replaceChildren(...list.map(item));
  $("#queries-count").textContent = total === 0 ? "No recording is like that."
    : total > list.length ? `${list.length} of ${total} recordings` : `${total} recordings it was not trained on`;
  $("#queries-more").hidden = total <= list.length;
  if (state.row === null && list.length) pick(list[0]);
  mark();
}

function item(query) {
  const right = query.label === query.predicted;
  return el("li", { role: "option", id: `query-${query.row}`, "aria-selected": "false", onclick: () => pick(query) },
    el("span", { class: "nr" }, `#${query.row}`),
    el("span", {}, query.predicted),
    el("span", { class: "p" }, percent(query.probability)),
    right ? null : el("span", { class: "wrong" }, `but it is ${query.label}`));
}

function pick(query) {
  known.query = query;
  const target = state.target === query.predicted ? null : state.target;
  set({ row: query.row, target, shown: 0 });
  mark();
  picked();
}

function mark() {
  const box = $("#queries");
  for (const option of box.children) option.setAttribute("aria-selected", String(option.id === `query-${state.row}`));
  const now = document.getElementById(`query-${state.row}`);
  if (!now) {
    box.removeAttribute("aria-activedescendant");
    return;
  }
  box.setAttribute("aria-activedescendant", now.id);
  const top = now.offsetTop - box.offsetTop;
  if (top < box.scrollTop || top + now.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = top - 60;
}

function onKey(event) {
  const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity, PageDown: 8, PageUp: -8 }[event.key];
  if (step === undefined || !list.length) return;
  event.preventDefault();
  const now = list.findIndex((query) => query.row === state.row);
  pick(list[Math.max(0, Math.min(list.length - 1, now + step))]);
}
