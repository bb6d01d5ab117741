// Training jobs: polled while they run, shown as cards with one bar, the time left and the learning curves. Finished ones
// are listed below.

import { get, onReturn, remove } from "./api.js";
import { $, announce, el, notice, short, svg } from "./dom.js";

const INTERVAL = 500; // milliseconds between two polls
const [WIDTH, HEIGHT] = [240, 56]; // of the learning curves
let timer = null;
let jobs = [];
let onChange = () => {};
let onEnd = () => {};
const handled = new Set(); // finished jobs that were passed to onEnd
const dismissed = new Set();

export function initJobs(changeListener, endListener) {
  onChange = changeListener;
  onEnd = endListener;
  onReturn(() => poll());
  poll(true);
}

const isActive = (job) => job.state === "queued" || job.state === "running";

export async function poll(first = false) {
  clearTimeout(timer);
  try {
    jobs = await get("/jobs");
  } catch (error) {
    if (error.code !== "gone") notice(error.message); // else it is polled again when the studio is back
    return;
  }
  for (const job of jobs) {
    if (isActive(job) || handled.has(job.id)) continue;
    handled.add(job.id);
    if (first) {
      if (job.state !== "lost") dismissed.add(job.id); // finished before this page was opened
      continue;
    }
    announce(`${job.title}: ${job.state}`);
    await onEnd(job);
  }
  onChange();
  drawHistory();
  if (jobs.some(isActive)) timer = setTimeout(poll, INTERVAL);
}

export function jobCards(kind, parent) {
  return jobs
    .filter((job) => job.kind === kind && job.parent === parent && job.state !== "done" && !dismissed.has(job.id))
    .slice(-3)
    .map(card);
}

const titleOf = (job) => job.title[0].toUpperCase() + job.title.slice(1);

const ENDED = {
  failed: (job) => `${titleOf(job)} failed: ${job.error?.message}`,
  cancelled: (job) => `${titleOf(job)} was cancelled.`,
  lost: (job) => `${titleOf(job)} was lost: ${job.error?.message ?? "the studio ended before it was finished."}`,
};

function card(job) {
  const title = titleOf(job);
  if (ENDED[job.state]) {
    const close = el("button", { type: "button", class: "plain", onclick: () => { dismissed.add(job.id); onChange(); } }, "Dismiss");
    return el("div", { class: `job ended ${job.state}`, "data-job": job.id }, el("p", {}, ENDED[job.state](job)), close);
  }
  const cancel = el("button", { type: "button", onclick: (event) => stop(job, event.target) }, "Cancel");
  const bar = el("progress", { max: "100", "aria-label": title });
  if (job.share) bar.value = 100 * job.share;
  return el("div", { class: "job", "data-job": job.id },
    el("div", { class: "row" }, el("strong", {}, title), cancel),
    bar,
    el("p", { class: "about" }, progressText(job)),
    learningCurves(job));
}

function progressText(job) {
  if (job.state === "queued") return "queued";
  const passed = `${Math.round(job.seconds)} s`;
  if (!job.share) return `${job.stage}… · ${passed}`;
  const left = job.left === null || job.left === undefined ? "" : `about ${duration(job.left)} left · `;
  return `${left}${passed}${job.stage && job.stage !== job.title ? ` · ${job.stage}` : ""}`;
}

const duration = (seconds) => (seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`);

// The values that a training reports, each on a scale of its own, with its last value.
function learningCurves(job) {
  const entries = Object.entries(job.curves ?? {}).filter(([, values]) => values.length > 1).slice(0, 4);
  if (!entries.length) return null;
  return el("div", { class: "learning" }, ...entries.map(([name, values]) => {
    const found = values.filter((value) => value !== null);
    const [low, high] = [Math.min(...found), Math.max(...found)];
    const points = values.flatMap((value, i) => (value === null ? [] : [`${(WIDTH * i) / (values.length - 1)},${HEIGHT - 4 - ((HEIGHT - 8) * (value - low)) / (high - low || 1)}`]));
    return el("figure", {},
      svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${name} from ${short(values[0] ?? 0)} to ${short(found.at(-1) ?? 0)}` }, svg("polyline", { points: points.join(" ") })),
      el("figcaption", {}, `${name} ${short(found.at(-1) ?? 0)}`));
  }));
}

// All trainings, the newest first; also those before the studio was started the last time.
function drawHistory() {
  const ended = jobs.filter((job) => !isActive(job)).reverse();
  $("#trainings").hidden = !ended.length;
  $("#trainings ul").replaceChildren(...ended.map((job) => el("li", {},
    el("span", {}, titleOf(job)),
    el("span", { class: `state ${job.state}` }, job.state === "done" ? `done in ${duration(job.seconds)}` : job.state),
    job.error ? el("p", { class: "about" }, job.error.message) : null,
    learningCurves(job))));
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
