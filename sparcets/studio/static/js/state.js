// State of the page, stored in the fragment of the URL: a reload or a shared link shows the same. Every action of the
// user is an entry of the browser's history, so that back and forward undo and redo it.

const EMPTY = {
  view: "recording", dataset: null, classifier: null, explainer: null, row: null,
  target: null, sparsity: null, answers: 1, shown: 0, compare: null,
  immutable: [], frozen: [], frozenFeatures: {}, ranges: {}, direction: {}, strokes: [], findRest: false,
  selected: [], source: null,
};
const KINDS = { row: "number", sparsity: "number" }; // of entries that are null at first; the others are strings

export const state = structuredClone(EMPTY);

// Data about the selected items: records of the API, values of the recording.
export const known = {
  status: null, catalog: null, dataset: null, classifier: null, explainer: null, query: null, series: null, skeleton: null,
};

// An entry of an object by a name from a file, which may be that of something every object has, such as "constructor".
export const own = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined);
export const withEntry = (object, name, value) => Object.fromEntries([...Object.entries(object).filter(([n]) => n !== name), [name, value]]);
export const withoutEntry = (object, name) => Object.fromEntries(Object.entries(object).filter(([n]) => n !== name));

function sameKind(name, value) {
  const like = EMPTY[name];
  if (value === null || like === null) return value === null ? like === null : typeof value === (KINDS[name] ?? "string");
  return typeof value === typeof like && Array.isArray(value) === Array.isArray(like);
}

export function readUrl() {
  const text = location.hash.slice(1);
  Object.assign(state, structuredClone(EMPTY));
  if (!text) return;
  try {
    const given = JSON.parse(decodeURIComponent(text));
    for (const name of Object.keys(EMPTY)) if (Object.hasOwn(given, name) && sameKind(name, given[name])) state[name] = given[name];
  } catch {
    // An incomplete URL: start with an empty state.
  }
}

function url() {
  const entries = Object.entries(state).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(EMPTY[name]));
  return location.pathname + (entries.length ? `#${encodeURIComponent(JSON.stringify(Object.fromEntries(entries)))}` : "");
}

const step = () => history.state?.step ?? 0;
const last = () => Number(sessionStorage.getItem("last") ?? 0); // the newest step, as far as this tab knows
export const canUndo = () => step() > 0;
export const canRedo = () => step() < last();

// Changes the state as a consequence of something else; the entry of the history stays the same.
export function set(changes) {
  Object.assign(state, changes);
  history.replaceState({ step: step() }, "", url());
}

// Changes the state as an action of the user, which can be undone.
export function act(changes) {
  Object.assign(state, changes);
  if (url() === location.pathname + location.hash) return;
  history.pushState({ step: step() + 1 }, "", url());
  sessionStorage.setItem("last", String(step()));
}

// A link that was opened in this tab is a new beginning: what was undone before it cannot be redone.
export function startHistory() {
  if (history.state?.step === undefined) {
    history.replaceState({ step: 0 }, "", location.href);
    sessionStorage.setItem("last", "0");
  }
}

export const NO_LIMITS = { immutable: [], frozen: [], frozenFeatures: {}, ranges: {}, direction: {} };
export const NOT_DRAWN = { strokes: [], findRest: false };

// The request to the API for the current state.
export function explainRequest(explainer = state.explainer) {
  return {
    explainer,
    rows: [state.row],
    target: state.target,
    sparsity: state.sparsity,
    answers: state.strokes.length && !state.findRest ? 1 : state.answers,
    constraints: {
      immutable: state.immutable, frozen: state.frozen, frozen_features: state.frozenFeatures,
      ranges: state.ranges, direction: state.direction,
    },
    strokes: state.strokes,
    find_rest: state.findRest,
  };
}

// What is asked, apart from how much may change: answers to the same question are comparable.
export function question() {
  const { sparsity, answers, ...rest } = explainRequest();
  return JSON.stringify(rest);
}
