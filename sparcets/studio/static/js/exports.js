// Exports of the answer on the page: figure, table of changes, explanation file, report, Python code; and the report of
// a selection of recordings.

import { file, post } from "./api.js";
import { $, announce, counted, el, notice } from "./dom.js";
import { mark } from "./queries.js";
import { explainRequest, known, set, state } from "./state.js";

const FILES = [
  ["png", "Figure (PNG)"], ["pdf", "Figure (PDF)"], ["csv", "Table of changes (CSV)"], ["npz", "Explanation (NPZ)"], ["html", "Report (HTML)"], ["py", "Python code (.py)"],
];
const AT_ONCE = 4; // recordings per request, so that other requests do not wait long
let codeKey = ""; // the request whose code is shown
let stopped = false; // a report that is being made is not wanted any more

// Names the recording as the user's file does, as far as a file name can.
function fileName(kind) {
  const id = known.query?.id?.replace(/[^\p{L}\p{N}_-]+/gu, "_").slice(0, 60);
  return `recording-${id || state.row}.${kind}`;
}

const exportRequest = () => ({ ...explainRequest(), shown: state.shown });

export function initExports() {
  $("#exports").replaceChildren(...FILES.map(([kind, label]) =>
    el("button", { type: "button", "data-kind": kind, onclick: (event) => download(kind, event.currentTarget) }, label)));
  $("#code").addEventListener("toggle", drawCode);
  $("#copy").addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText($("#code code").textContent);
      $("#copy").textContent = "Copied";
    } catch {
      getSelection().selectAllChildren($("#code code"));
      $("#copy").textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => { $("#copy").textContent = "Copy"; }, 2000);
  });
}

export function save(blob, name) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  announce(`Saved ${name}.`);
}

async function download(kind, button) {
  button.disabled = true;
  const started = performance.now();
  try {
    save(await file(`/exports/${kind}`, exportRequest()), fileName(kind));
    performance.measure("export", { start: started, detail: kind });
  } catch (error) {
    if (error.code !== "gone") notice(error.message);
  } finally {
    button.disabled = false;
  }
}

export async function drawCode() {
  if (!$("#code").open) return;
  const key = JSON.stringify(exportRequest());
  if (key === codeKey) return;
  codeKey = key;
  try {
    const text = await (await file("/exports/py", exportRequest())).text();
    if (codeKey === key) $("#code code").textContent = text;
  } catch (error) {
    codeKey = "";
    $("#code code").textContent = error.message;
  }
}

// The recordings that are selected in the list.
export function drawSelection() {
  const rows = state.selected;
  $("#selection").hidden = !rows.length;
  $("#selection").replaceChildren(
    el("span", {}, `${counted(rows.length, "recording")} selected`),
    el("button", { type: "button", id: "report", onclick: (event) => report(rows, event.currentTarget) }, "Report of the selection (HTML)"),
    el("button", { type: "button", class: "plain", onclick: () => { set({ selected: [] }); mark(); drawSelection(); } }, "Clear the selection"));
}

// Explains recordings a few at a time; the studio keeps the answers. Returns them, or null if it was stopped.
export async function explainAll(rows, change, onProgress, isStopped) {
  const request = { ...explainRequest(), strokes: [], ...change };
  const answers = [];
  for (let i = 0; i < rows.length; i += AT_ONCE) {
    onProgress(i);
    const part = await post("/explanations", { ...request, rows: rows.slice(i, i + AT_ONCE) });
    answers.push(...part.answers);
    if (isStopped()) return null;
  }
  return answers;
}

async function report(rows, button) {
  stopped = button.dataset.running === "true";
  if (stopped) return;
  button.dataset.running = "true";
  try {
    const done = await explainAll(rows, {}, (n) => { button.textContent = `Explained ${n} of ${rows.length}; stop`; }, () => stopped);
    if (done) save(await file("/exports/html", { ...exportRequest(), strokes: [], rows, shown: 0 }), `report-${rows.length}-recordings.html`);
  } catch (error) {
    if (error.code !== "gone") notice(error.message);
  }
  drawSelection();
}
