"use strict";
// Draws the figures that stand in the page as JSON, in the colours of the page, and lets the reader hide what is drawn.
const FIGURES = JSON.parse(document.getElementById("figures").textContent);
const CONFIG = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: "reset" };
const HIDDEN = new Set();
const NARROW = matchMedia("(max-width: 640px)");
const LETTERS = 36;

// Breaks the title of an axis between words: narrow screens hold so many letters in a line.
function titled({ title, ...axis }) {
  const lines = title.text.split(" ").reduce((lines, word) => {
    const longer = `${lines.at(-1)} ${word}`;
    return NARROW.matches && longer.length > LETTERS ? [...lines, word] : [...lines.slice(0, -1), longer.trim()];
  }, [""]);
  return { ...axis, title: { ...title, text: lines.join("<br>") } };
}

function themed(layout) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  // Plotly hides a label that overflows before it widens the margin, so the last one of an axis must be allowed to.
  const margins = { automargin: true, ticklabeloverflow: "allow" };
  const axis = { gridcolor: colour("--rule"), zeroline: false, linecolor: colour("--rule"), fixedrange: true, ...margins };
  const labels = layout.annotations ?? [];
  return {
    ...layout,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: colour("--sans"), size: 12, color: colour("--quiet") },
    // Names at the right edge need room; narrow screens have them above.
    margin: { l: 48, r: 10, t: 8, b: 42, ...(NARROW.matches ? {} : layout.margin) },
    annotations: labels.filter((label) => !label.name || !NARROW.matches).map((label) => ({ ...label, opacity: HIDDEN.has(label.name) ? 0.35 : 1 })),
    showlegend: false,
    hovermode: "closest",
    dragmode: false,
    hoverlabel: { bgcolor: colour("--paper"), font: { color: colour("--ink") } },
    xaxis: { ...axis, ...titled(layout.xaxis) },
    yaxis: { ...axis, ...titled(layout.yaxis), ...(NARROW.matches ? { side: "left" } : {}) },
  };
}

function draw(place) {
  const figure = FIGURES[place.id][place.dataset.figure];
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  const line = (trace) => (trace.line?.color === "black" ? { line: { ...trace.line, color: ink } } : {});
  const data = figure.data.map((trace) => ({ ...trace, ...line(trace), visible: !HIDDEN.has(trace.meta) }));
  Plotly.react(place, data, themed(figure.layout), CONFIG);
}

const places = [...document.querySelectorAll(".chart")];
const drawAll = () => places.forEach((place) => place.dataset.drawn && draw(place));

function toggle(name) {
  if (!HIDDEN.delete(name)) HIDDEN.add(name);
  const shown = String(!HIDDEN.has(name));
  document.querySelectorAll(".chip").forEach((chip) => chip.dataset.agent === name && chip.setAttribute("aria-pressed", shown));
  drawAll();
}

// A figure is drawn when it comes into view: a page with many environments opens at once.
const seen = new IntersectionObserver((entries) => entries.filter((e) => e.isIntersecting).forEach(({ target }) => {
  seen.unobserve(target);
  target.dataset.drawn = "yes";
  draw(target);
  target.on("plotly_clickannotation", (event) => event.annotation.name && toggle(event.annotation.name));
}), { rootMargin: "600px" });
places.forEach((place) => seen.observe(place));

for (const select of document.querySelectorAll("select[data-chart]")) {
  select.addEventListener("change", () => {
    const place = document.getElementById(select.dataset.chart);
    place.dataset.figure = select.value;
    draw(place);
  });
}

document.querySelectorAll(".chip").forEach((chip) => chip.addEventListener("click", () => toggle(chip.dataset.agent)));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
NARROW.addEventListener("change", drawAll);
addEventListener("beforeprint", () => places.forEach(draw));
