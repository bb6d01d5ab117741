// An answer as text: the verdict first, then what changes; for two methods side by side.

import { $, el, percent } from "./dom.js";
import { methodName } from "./setup.js";
import { act, known, state } from "./state.js";

export const badge = (verdict) => el("span", { class: `badge ${verdict.tone}`, "data-verdict": verdict.word }, `${verdict.symbol} ${capital(verdict.word)}`);
const capital = (text) => text[0].toUpperCase() + text.slice(1);

export function drawAnswers(answers, others, onShow) {
  const tabs = $("#tabs");
  const found = answers.filter((a) => a.status !== "not_found").length;
  tabs.hidden = answers.length < 2;
  tabs.replaceChildren(...answers.map((answer, i) => el("button", {
    type: "button", "aria-pressed": String(i === state.shown), disabled: answer.status === "not_found" && i > 0,
    onclick: () => { act({ shown: i }); onShow(); },
  }, `${i + 1}: ${answer.verdict.symbol} ${answer.verdict.word}${answer.status === "not_found" ? "" : `, ${percent(answer.share_changed)}`}`)));
  if (!tabs.hidden && found < answers.length) tabs.append(el("span", { class: "about" }, `${found} of ${answers.length} were found.`));
  const both = [[answers[state.shown], known.explainer.method, ""]];
  if (others) both.push([others[Math.min(state.shown, others.length - 1)], others.method, "other"]);
  $("#verdict").replaceChildren(...both.map((one) => conclusion(...one)));
  $("#answer-text").replaceChildren(...both.map((one) => words(...one)));
  $("#badge").replaceChildren(badge(both[0][0].verdict));
  $("#beside-verdict").replaceChildren(...both.map(([answer]) => badge(answer.verdict)));
  drawSupport(both[0][0]);
}

export function drawNoAnswer() {
  $("#tabs").hidden = true;
  $("#answer-text").replaceChildren("There is no answer to show.");
  for (const id of ["#verdict", "#badge", "#beside-verdict", "#support"]) $(id).replaceChildren();
}

const isDrawn = () => state.strokes.length > 0 && !state.findRest;
const byHand = (method) => (isDrawn() ? "drawn by hand" : `by ${methodName(method)}`);

function facts(answer) {
  const k = known.dataset.class_names.indexOf(answer.target);
  return `${answer.target}: ${percent(answer.probability_before[k])} → ${percent(answer.probability_after[k])}`
    + (answer.status === "unchanged" ? "" : ` · ${percent(answer.share_changed)} of the values changed`);
}

function conclusion(answer, method, kind) {
  const { verdict } = answer;
  const parts = [verdict.sentence, ...verdict.doubts].filter(Boolean);
  return el("div", { class: `conclusion ${verdict.tone} ${kind}`, "data-status": answer.status, "data-verdict": verdict.word },
    el("div", { class: "head" },
      badge(verdict),
      el("span", { class: "facts" }, facts(answer)),
      el("span", { class: "facts method" }, byHand(method))),
    parts.length > 1 ? el("ul", {}, ...parts.map((part) => el("li", {}, part))) : el("p", {}, `${capital(parts[0] ?? "")}.`));
}

function words(answer, method, kind) {
  const told = answer.description;
  if (isDrawn() && !answer.valid) {
    const k = answer.probability_after.indexOf(Math.max(...answer.probability_after));
    const said = known.dataset.class_names[k];
    return el("article", { class: "result" }, el("p", { class: "text" }, `For what was drawn, the model says ${said} (${percent(answer.probability_after[k])}), not ${answer.target}.`),
      told.note ? el("p", { class: "note" }, told.note) : null);
  }
  return el("article", { class: `result ${kind}` },
    kind ? el("p", { class: "about" }, byHand(method)) : null,
    ...told.doubts.map((doubt) => el("p", { class: "careful" }, el("b", {}, "Careful: "), doubt)),
    el("p", { class: "text" }, told.opening),
    told.changes.length ? el("ul", { class: "text" }, ...told.changes.map((change) => el("li", {}, change))) : null,
    ...[told.rest, told.unchanged, told.trust].filter(Boolean).map((text) => el("p", {}, text)),
    edits(answer),
    told.note ? el("p", { class: "note" }, told.note) : null);
}

// What an answer consists of; nothing for a method that gives values.
function edits(answer) {
  if (answer.status === "not_found" || answer.edits.every((edit) => edit.kind === "free")) return null;
  const heads = ["edit", "amount", "steps", "features", "needed by"];
  const row = (edit) => [
    edit.row === null ? edit.kind : `${edit.kind} recording ${edit.row}`, String(Number(edit.amount.toPrecision(2))),
    `${edit.start} to ${edit.end - 1}`, edit.features.join(", "), edit.needed_by.join(", "),
  ];
  return el("details", { class: "edits" }, el("summary", {}, answer.edits.length === 1 ? "1 edit" : `${answer.edits.length} edits`),
    el("table", {},
      el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, ...answer.edits.map((edit) => el("tr", {}, ...row(edit).map((cell) => el("td", {}, cell)))))));
}

// What models of other kinds say, each by name: never by colour alone.
function drawSupport(answer) {
  const rows = Object.entries(answer.support).filter(([, share]) => share !== null);
  $("#support").replaceChildren(...(rows.length && answer.status !== "unchanged" ? [
    el("h3", {}, `Say ${answer.target}, too`),
    el("dl", {}, ...rows.flatMap(([name, share]) => [
      el("dt", {}, name),
      el("dd", { class: share > 0.5 ? "green" : "red" }, el("meter", { min: "0", max: "1", value: String(share), "aria-label": name }), ` ${share > 0.5 ? "✓" : "✗"} ${percent(share)}`),
    ])),
  ] : []));
}

export function summary(answer) {
  const k = known.dataset.class_names.indexOf(answer.target);
  return `${capital(answer.verdict.word)}: ${answer.target} ${percent(answer.probability_after[k])}, ${percent(answer.share_changed)} of the values changed.`;
}
