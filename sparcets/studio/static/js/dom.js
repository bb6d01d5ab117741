// DOM helpers. Text is always inserted as text, so that names from files never become markup.

export const $ = (selector, root = document) => root.querySelector(selector);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else if (name in element && typeof value !== "string" && !(element instanceof SVGElement)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

export function options(select, entries, chosen) {
  select.replaceChildren(
    ...entries.map(([value, text]) => el("option", { value: String(value), selected: String(value) === String(chosen) }, text)),
  );
}

const ICONS = {
  locked: "M5 9h10v8H5zM7 9V6a3 3 0 0 1 6 0v3",
  open: "M5 9h10v8H5zM7 9V6a3 3 0 0 1 5.6-1.5",
  limits: "M3 6h4M11 6h6M9 4a2 2 0 1 0 .01 0zM3 14h7M14 14h3M12 12a2 2 0 1 0 .01 0z",
};

export const icon = (name) => svg("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));

// A name with line-break opportunities: before capitals, and after _ . - and spaces if at least three characters follow.
export function breakable(name) {
  const parts = name.split(/(?<=[a-z])(?=[A-Z])|(?<=[_.\- ])(?=.{3})/);
  return parts.flatMap((part, i) => (i ? [el("wbr"), part] : [part]));
}

export function percent(share) {
  const value = 100 * share;
  if (value > 99.5 && value < 100) return "99.9 %";
  return `${value < 10 && value > 0 ? value.toPrecision(2) : Math.round(value)} %`;
}

export function short(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  return size >= 1e5 || size < 1e-3 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

export const counted = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

// Shows a message above the page until it is dismissed or replaced; an empty message clears it.
export function notice(message, kind = "error") {
  const container = $("#notices");
  container.replaceChildren();
  if (!message) return;
  const close = el("button", { type: "button", class: "plain", onclick: () => container.replaceChildren() }, "Dismiss");
  container.append(el("div", { class: `notice ${kind}`, role: kind === "error" ? "alert" : "status" }, el("span", {}, message), close));
}

// Announces a message to screen readers.
export function announce(message) {
  $("#announcement").textContent = message;
}
