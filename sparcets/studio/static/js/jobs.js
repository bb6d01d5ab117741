// Training jobs: polled while they run, shown as cards with progress and a cancel button.

import { get, remove } from "./api.js";
import { announce, el, notice } from "./dom.js";

const INTERVAL = 500; // milliseconds between two polls
let timer = null;
let jobs = [];
let onChange = () => {};
let onEnd = () => {};
const handled = new Set(); // finished jobs that were passed to onEnd
const dismissed = new Set();

export function initJobs(changeListener, endListener) {
  onChange = changeListener;
  onEnd = endListener;
  poll(true);
}

export async function poll(first = false) {
  clearTimeout(timer);
  try {
    jobs = await get("/jobs");
  } catch (error) {
    notice(error.message);
    timer = setTimeout(poll, 4 * INTERVAL);
    return;
  }
  for (const job of jobs) {
    if (job.state === "queued" || job.state === "running" || handled.has(job.id)) continue;
    handled.add(job.id);
    if (first) {
      dismissed.add(job.id); // finished before this page was opened
      continue;
    }
    announce(`${job.title}: ${job.state}`);
    await onEnd(job);
  }
  onChange();
  if (jobs.some((job) => job.state === "queued" || job.state === "running")) timer = setTimeout(poll, INTERVAL);
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
    const text = job.state === "failed" ? `${title} failed: ${job.error?.message}` : `${title} was cancelled.`;
    const close = el("button", { type: "button", class: "plain", onclick: () => { dismissed.add(job.id); onChange(); } }, "Dismiss");
    return el("div", { class: `job ${job.state}`, "data-job": job.id }, el("p", {}, text), close);
  }
  const cancel = el("button", { type: "button", onclick: (event) => stop(job, event.target) }, "Cancel");
  const bar = el("progress", { max: "100", "aria-label": title });
  if (job.total) bar.value = (100 * job.done) / job.total;
  const progress = job.state === "queued" ? "queued" : stageText(job);
  return el("div", { class: "job", "data-job": job.id },
    el("div", { class: "row" }, el("strong", {}, title), cancel),
    bar,
    el("p", { class: "about" }, `${progress} · ${Math.round(job.seconds)} s`));
}

function stageText(job) {
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
  poll();
}
