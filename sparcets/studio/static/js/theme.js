// Colours of figures, from the style sheet, so that they follow the light or dark mode of the system.

const NAMES = ["ink", "soft", "line", "grid", "card", "recorded", "answer", "other", "mark", "mark-other", "locked-area", "green", "amber", "red", "grey"];

export function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// How an answer is drawn: only one that is believed looks like an answer.
export function answerLook(answer) {
  const palette = colours();
  const word = answer.verdict.word;
  if (word === "believed" || word === "unchanged") return { color: palette.answer, dash: "solid", label: "answer" };
  if (word === "not reached") return { color: palette.grey, dash: "dash", label: "not reached" };
  return { color: palette[answer.verdict.tone], dash: "dash", label: word };
}

export function onThemeChange(listener) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", listener);
}
