// Exports of the answer on the page: figure, table of changes, explanation file, report, Python code.

import { file } from "./api.js";
import { $, announce, el, notice } from "./dom.js";
import { explainRequest, known, state } from "./state.js";

const FILES = [
  ["png", "Figure (PNG)"], ["pdf", "Figure (PDF)"], ["csv", "Table of changes (CSV)"], ["npz", "Explanation (NPZ)"], ["html", "Report (HTML)"], ["py", "Python code (.py)"],
];
let codeKey = ""; // the request whose code is shown

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

async function download(kind, button) {
  button.disabled = true;
  const started = performance.now();
  try {
    const blob = await file(`/exports/${kind}`, exportRequest());
    const link = el("a", { href: URL.createObjectURL(blob), download: fileName(kind) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    performance.measure("export", { start: started, detail: kind });
    announce(`Saved ${link.download}.`);
  } catch (error) {
    notice(error.message);
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
