// Trainings: watched while they run, shown in words, cancelled by a button.

import { get, remove } from "./api.js";
import { el, notice, speak } from "./dom.js";

const EVERY = 500; // milliseconds between two looks
let timer = null;
let jobs = [];
let told = () => {};
let ended = () => {};
const seen = new Set(); // those whose end was dealt with
const dismissed = new Set();

export function watchJobs(onChange, onEnd) {
  told = onChange;
  ended = onEnd;
  look(true);
}

export async function look(first = false) {
  clearTimeout(timer);
  try {
    jobs = await get("/jobs");
  } catch (error) {
    notice(error.message);
    timer = setTimeout(look, 4 * EVERY);
    return;
  }
  for (const job of jobs) {
    if (job.state === "queued" || job.state === "running" || seen.has(job.id)) continue;
    seen.add(job.id);
    if (first) {
      dismissed.add(job.id); // it ended before this page was opened
      continue;
    }
    speak(`${job.title}: ${job.state}`);
    await ended(job);
  }
  told();
  if (jobs.some((job) => job.state === "queued" || job.state === "running")) timer = setTimeout(look, EVERY);
}

export function jobCards(kind, parent) {
  return jobs
    .filter((job) => job.kind === kind && job.parent === parent && job.state !== "done" && !dismissed.has(job.id))
    .slice(-3)
    .map(card);
}

function card(job) {
  const title = job.title[0].toUpperCase() + job.title.slice(1);
  if (job.state === "failed" || job.state === "cancelled") {
    const text = job.state === "failed" ? `${title} failed: ${job.error?.message}` : `${title} was cancelled; nothing of it is left.`;
    const close = el("button", { type: "button", class: "plain", onclick: () => { dismissed.add(job.id); told(); } }, "Dismiss");
    return el("div", { class: `job ${job.state}`, "data-job": job.id }, el("p", {}, text), close);
  }
  const cancel = el("button", { type: "button", onclick: (event) => stop(job, event.target) }, "Cancel");
  const bar = el("progress", { max: "100", "aria-label": title });
  if (job.total) bar.value = (100 * job.done) / job.total;
  const where = job.state === "queued" ? "waiting for its turn" : stageInWords(job);
  return el("div", { class: "job", "data-job": job.id },
    el("div", { class: "row" }, el("strong", {}, title), cancel),
    bar,
    el("p", { class: "about" }, `${where} · ${Math.round(job.seconds)} s`));
}

function stageInWords(job) {
  const stage = job.stage === job.title ? "" : `stage ${Math.max(1, job.stages)}, ${job.stage}: `;
  if (!job.total) return `${job.stage}…`;
  return `${stage}round ${Math.round(job.done)} of at most ${Math.round(job.total)}`;
}

async function stop(job, button) {
  button.disabled = true;
  button.textContent = "Cancelling…";
  try {
    await remove(`/jobs/${job.id}`);
  } catch (error) {
    if (error.code !== "finished") notice(error.message);
  }
  look();
}
