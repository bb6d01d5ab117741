// Exports: figure, table of changes, explanation file, Python code.

import { file } from "./api.js";
import { $, announce, el, notice } from "./dom.js";
import { explainRequest, state } from "./state.js";

const FILES = [
  ["png", "Figure (PNG)"], ["pdf", "Figure (PDF)"], ["csv", "Table of changes (CSV)"], ["npz", "Explanation (NPZ)"], ["py", "Python code (.py)"],
];
let codeKey = ""; // the request whose code is shown

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
  try {
    const blob = await file(`/exports/${kind}`, exportRequest());
    const link = el("a", { href: URL.createObjectURL(blob), download: `recording-${state.row}.${kind}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
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
