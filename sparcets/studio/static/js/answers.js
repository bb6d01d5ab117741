// The text of an answer: status, probabilities and description; for two methods side by side.

import { $, el, percent } from "./dom.js";
import { methodName } from "./setup.js";
import { known, set, state } from "./state.js";

const STATUS = {
  generated: ["Found", "good"],
  refined: ["Found by search", "good"],
  neighbour: ["Taken from a real recording", "good"],
  unchanged: ["Nothing has to change", "good"],
  not_found: ["No answer found", "bad"],
};

export function drawAnswers(answers, others, onShow) {
  const tabs = $("#tabs");
  const found = answers.filter((a) => a.status !== "not_found").length;
  tabs.hidden = answers.length < 2;
  tabs.replaceChildren(...answers.map((answer, i) => el("button", {
    type: "button", "aria-pressed": String(i === state.shown), disabled: answer.status === "not_found" && i > 0,
    onclick: () => { set({ shown: i }); onShow(); },
  }, answer.status === "not_found" ? `Answer ${i + 1}: none` : `Answer ${i + 1}: ${percent(answer.share_changed)}`)));
  if (!tabs.hidden && found < answers.length) tabs.append(el("span", { class: "about" }, `${found} of ${answers.length} were found.`));
  const cards = [card(answers[state.shown], known.explainer.method, "")];
  if (others) cards.push(card(others[Math.min(state.shown, others.length - 1)], others.method, "other"));
  $("#answer-text").replaceChildren(...cards);
}

function card(answer, method, kind) {
  const [label, level] = STATUS[answer.status];
  const k = known.dataset.class_names.indexOf(answer.target);
  const facts = `${answer.target}: ${percent(answer.probability_before[k])} → ${percent(answer.probability_after[k])}`
    + (answer.status === "unchanged" ? "" : ` · ${percent(answer.share_changed)} of the values changed`);
  return el("article", { class: `result ${kind}`, "data-status": answer.status },
    el("div", { class: "head" },
      el("span", { class: `badge ${level}` }, label),
      el("span", { class: "facts" }, facts),
      el("span", { class: "facts method" }, `by ${methodName(method)}`)),
    el("p", { class: `text${answer.text.length > 900 ? " long" : ""}` }, answer.text));
}

export function summary(answer) {
  const [label] = STATUS[answer.status];
  return `${label}: ${answer.target} ${percent(answer.probability_after[known.dataset.class_names.indexOf(answer.target)])}, ${percent(answer.share_changed)} of the values changed.`;
}
