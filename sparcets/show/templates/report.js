// Draws the figures of an explanation when they are scrolled into view, and sorts the table. Loads no external resource.
"use strict";

const OPTIONS = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };

async function unpack(id) {
  const letters = atob(document.getElementById(id).textContent), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i); // much faster than Uint8Array.from
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

async function startPlotly() {
  const code = window.Plotly ? "" : await unpack("plotly");
  if (window.Plotly) return; // another call has loaded it meanwhile
  const script = document.createElement("script");
  script.textContent = code;
  document.head.append(script);
}

async function draw(box) {
  if (box.dataset.drawn) return;
  box.dataset.drawn = "yes";
  const empty = () => [...box.querySelectorAll(".plot")].filter((plot) => !plot.data);
  try {
    const figures = JSON.parse(await unpack(box.dataset.figures));
    await startPlotly();
    for (const plot of empty()) {
      if (!box.dataset.drawn) return; // scrolled away meanwhile
      const { data, layout, frames } = figures[plot.dataset.name];
      const config = { ...OPTIONS, toImageButtonOptions: { filename: `${box.id}-${plot.dataset.name}`, scale: 3 } };
      plot.textContent = "";
      await Plotly.newPlot(plot, data, layout, config);
      if (frames) await Plotly.addFrames(plot, frames);
    }
  } catch (error) {
    for (const plot of empty()) plot.textContent = `This figure cannot be drawn: ${error.message}`;
  }
}

// Figures far from the viewport are removed again: hundreds at once would fill the memory.
function purge(box) {
  if (!box.dataset.drawn) return;
  delete box.dataset.drawn;
  box.querySelectorAll(".plot").forEach((plot) => { if (plot.data) Plotly.purge(plot); });
}

// Uses the present position of the box: notifications of the observer may be late.
const NEAR = 300, FAR = 4000; // pixels outside the viewport
function update(box) {
  const { top, bottom } = box.getBoundingClientRect();
  const distance = Math.max(top - innerHeight, -bottom);
  if (distance < NEAR) draw(box);
  else if (distance > FAR) purge(box);
}

// Text first: loading plotly.js blocks the browser for about a second, so it waits until the page is responsive.
const DELAY = 200; // milliseconds
window.addEventListener("load", () => setTimeout(() => {
  for (const pixels of [NEAR, FAR]) {
    const observer = new IntersectionObserver((seen) => seen.forEach((s) => update(s.target)), { rootMargin: `${pixels}px` });
    document.querySelectorAll(".pictures").forEach((box) => observer.observe(box));
  }
}, DELAY));

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
