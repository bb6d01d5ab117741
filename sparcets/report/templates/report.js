// Draws the pictures of an explanation when they come into view, and sorts the table. Nothing is loaded from anywhere.
"use strict";

const OPTIONS = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };

async function unpack(id) {
  const letters = atob(document.getElementById(id).textContent), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i); // much sooner than Uint8Array.from
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

async function startPlotly() {
  const code = window.Plotly ? "" : await unpack("plotly");
  if (window.Plotly) return; // somebody else was faster
  const script = document.createElement("script");
  script.textContent = code;
  document.head.append(script);
}

async function draw(box) {
  if (box.dataset.drawn) return;
  box.dataset.drawn = "yes";
  const empty = () => [...box.querySelectorAll(".plot")].filter((place) => !place.data);
  try {
    const figures = JSON.parse(await unpack(box.dataset.figures));
    await startPlotly();
    for (const place of empty()) {
      if (!box.dataset.drawn) return; // scrolled away meanwhile
      const { data, layout, frames } = figures[place.dataset.name];
      const config = { ...OPTIONS, toImageButtonOptions: { filename: `${box.id}-${place.dataset.name}`, scale: 3 } };
      place.textContent = "";
      await Plotly.newPlot(place, data, layout, config);
      if (frames) await Plotly.addFrames(place, frames);
    }
  } catch (error) {
    for (const place of empty()) place.textContent = `This picture cannot be drawn: ${error.message}`;
  }
}

// Pictures far from view are thrown away again: two hundred at once would fill the memory.
function forget(box) {
  if (!box.dataset.drawn) return;
  delete box.dataset.drawn;
  box.querySelectorAll(".plot").forEach((place) => { if (place.data) Plotly.purge(place); });
}

// By where the box is now: notices may be late, and tell of a place that was left long ago.
const NEAR = 300, FAR = 4000; // pixels outside the window
function tend(box) {
  const { top, bottom } = box.getBoundingClientRect();
  const away = Math.max(top - innerHeight, -bottom);
  if (away < NEAR) draw(box);
  else if (away > FAR) forget(box);
}

// Words first: plotly.js keeps the browser busy for a second, and waits until the page stands and answers.
const PATIENCE = 200; // milliseconds
window.addEventListener("load", () => setTimeout(() => {
  for (const pixels of [NEAR, FAR]) {
    const observer = new IntersectionObserver((seen) => seen.forEach((s) => tend(s.target)), { rootMargin: `${pixels}px` });
    document.querySelectorAll(".pictures").forEach((box) => observer.observe(box));
  }
}, PATIENCE));

function sortBy(header) {
  const table = header.closest("table");
  const column = [...header.parentNode.children].indexOf(header);
  const up = header.getAttribute("aria-sort") !== "ascending";
  for (const other of header.parentNode.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", up ? "ascending" : "descending");
  const numeric = header.classList.contains("number");
  const value = (row) => row.children[column].dataset.value ?? row.children[column].textContent;
  const order = (a, b) => (numeric ? Number(value(a)) - Number(value(b)) : value(a).localeCompare(value(b)));
  const rows = [...table.tBodies[0].rows].sort((a, b) => (up ? order(a, b) : order(b, a)));
  table.tBodies[0].append(...rows);
}
document.querySelectorAll("th button").forEach((button) => button.addEventListener("click", () => sortBy(button.closest("th"))));
