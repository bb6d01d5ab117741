// What is on the screen, kept in the address: a reload shows the same, and so does the address sent to a colleague.

const EMPTY = {
  dataset: null, classifier: null, explainer: null, row: null,
  target: null, sparsity: null, answers: 1, shown: 0, compare: null,
  immutable: [], frozen: [], ranges: {}, direction: {},
};

export const state = structuredClone(EMPTY);

// What is known about what was chosen: records of the API, the recording's values.
export const known = { status: null, catalog: null, dataset: null, classifier: null, explainer: null, query: null, series: null };

export function readAddress() {
  const text = location.hash.slice(1);
  Object.assign(state, structuredClone(EMPTY));
  if (!text) return;
  try {
    const given = JSON.parse(decodeURIComponent(text));
    for (const name of Object.keys(EMPTY)) if (name in given) state[name] = given[name];
  } catch {
    // An address that was cut short: begin anew rather than half.
  }
}

export function writeAddress() {
  const said = Object.entries(state).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(EMPTY[name]));
  const text = said.length ? `#${encodeURIComponent(JSON.stringify(Object.fromEntries(said)))}` : "";
  history.replaceState(null, "", location.pathname + text);
}

export function set(changes) {
  Object.assign(state, changes);
  writeAddress();
}

export function clearLimits() {
  set({ immutable: [], frozen: [], ranges: {}, direction: {} });
}

// The question as the API takes it.
export function question(explainer = state.explainer) {
  return {
    explainer,
    rows: [state.row],
    target: state.target,
    sparsity: state.sparsity,
    answers: state.answers,
    constraints: { immutable: state.immutable, frozen: state.frozen, ranges: state.ranges, direction: state.direction },
  };
}
