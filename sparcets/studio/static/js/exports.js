// Taking it away: the picture, the table, the whole explanation, and the Python lines.

import { file } from "./api.js";
import { $, el, notice, speak } from "./dom.js";
import { question, state } from "./state.js";

const FILES = [
  ["png", "Picture (PNG)"], ["pdf", "Picture (PDF)"], ["csv", "Table of changes (CSV)"], ["npz", "Explanation (NPZ)"], ["py", "Python lines (.py)"],
];
let shownFor = "";

const asked = () => ({ ...question(), shown: state.shown });

export function beginExports() {
  $("#exports").replaceChildren(...FILES.map(([kind, words]) =>
    el("button", { type: "button", "data-kind": kind, onclick: (event) => take(kind, event.currentTarget) }, words)));
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

async function take(kind, button) {
  button.disabled = true;
  try {
    const made = await file(`/exports/${kind}`, asked());
    const link = el("a", { href: URL.createObjectURL(made), download: `recording-${state.row}.${kind}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    speak(`Saved ${link.download}.`);
  } catch (error) {
    notice(error.message);
  } finally {
    button.disabled = false;
  }
}

export async function drawCode() {
  if (!$("#code").open) return;
  const now = JSON.stringify(asked());
  if (now === shownFor) return;
  shownFor = now;
  try {
    const text = await (await file("/exports/py", asked())).text();
    if (shownFor === now) $("#code code").textContent = text;
  } catch (error) {
    shownFor = "";
    $("#code code").textContent = error.message;
  }
}
