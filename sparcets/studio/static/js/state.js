// State of the page, stored in the fragment of the URL: a reload or a shared link shows the same.

const EMPTY = {
  dataset: null, classifier: null, explainer: null, row: null,
  target: null, sparsity: null, answers: 1, shown: 0, compare: null,
  immutable: [], frozen: [], ranges: {}, direction: {},
};

export const state = structuredClone(EMPTY);

// Data about the selected items: records of the API, values of the recording.
export const known = { status: null, catalog: null, dataset: null, classifier: null, explainer: null, query: null, series: null };

export function readUrl() {
  const text = location.hash.slice(1);
  Object.assign(state, structuredClone(EMPTY));
  if (!text) return;
  try {
    const given = JSON.parse(decodeURIComponent(text));
    for (const name of Object.keys(EMPTY)) if (name in given) state[name] = given[name];
  } catch {
    // An incomplete URL: start with an empty state.
  }
}

export function writeUrl() {
  const entries = Object.entries(state).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(EMPTY[name]));
  const text = entries.length ? `#${encodeURIComponent(JSON.stringify(Object.fromEntries(entries)))}` : "";
  history.replaceState(null, "", location.pathname + text);
}

export function set(changes) {
  Object.assign(state, changes);
  writeUrl();
}

// Limits by feature. A feature may be called "constructor" or "__proto__": only an object's own entries are features.
export const limitOf = (limits, feature) => (Object.hasOwn(limits, feature) ? limits[feature] : null);
export const withLimit = (limits, feature, limit) => Object.fromEntries([...Object.entries(limits), [feature, limit]]);
export const withoutLimit = (limits, feature) => Object.fromEntries(Object.entries(limits).filter(([name]) => name !== feature));

export function clearLimits() {
  set({ immutable: [], frozen: [], ranges: {}, direction: {} });
}

// The request to the API for the current state.
export function explainRequest(explainer = state.explainer) {
  return {
    explainer,
    rows: [state.row],
    target: state.target,
    sparsity: state.sparsity,
    answers: state.answers,
    constraints: { immutable: state.immutable, frozen: state.frozen, ranges: state.ranges, direction: state.direction },
  };
}
