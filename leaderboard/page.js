"use strict";
// Draws the figures that stand in the page as JSON, in the colours of the page, and lets the reader hide agents.
const FIGURES = JSON.parse(document.getElementById("figures").textContent);
const CONFIG = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: "reset" };
const HIDDEN = new Set();

function themed(layout) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = { gridcolor: colour("--rule"), zeroline: false, linecolor: colour("--rule"), automargin: true, fixedrange: true };
  return {
    ...layout,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: colour("--sans"), size: 12, color: colour("--quiet") },
    margin: { l: 48, r: 10, t: 8, b: 42 },
    showlegend: false,
    hovermode: "closest",
    dragmode: false,
    hoverlabel: { bgcolor: colour("--paper"), font: { color: colour("--ink") } },
    xaxis: { ...axis, ...layout.xaxis },
    yaxis: { ...axis, ...layout.yaxis },
  };
}

function draw(place) {
  const figure = FIGURES[place.id][place.dataset.figure];
  const data = figure.data.map((trace) => ({ ...trace, visible: !HIDDEN.has(trace.meta) }));
  Plotly.react(place, data, themed(figure.layout), CONFIG);
}

const places = [...document.querySelectorAll(".chart")];
const drawAll = () => places.forEach((place) => place.dataset.drawn && draw(place));

// A figure is drawn when it comes into view: a page with many environments opens at once.
const seen = new IntersectionObserver((entries) => entries.filter((e) => e.isIntersecting).forEach((entry) => {
  seen.unobserve(entry.target);
  entry.target.dataset.drawn = "yes";
  draw(entry.target);
}), { rootMargin: "600px" });
places.forEach((place) => seen.observe(place));

for (const select of document.querySelectorAll("select[data-chart]")) {
  select.addEventListener("change", () => {
    const place = document.getElementById(select.dataset.chart);
    place.dataset.figure = select.value;
    draw(place);
  });
}

for (const chip of document.querySelectorAll(".chip")) {
  chip.addEventListener("click", () => {
    const agent = chip.dataset.agent;
    if (!HIDDEN.delete(agent)) HIDDEN.add(agent);
    const shown = String(!HIDDEN.has(agent));
    document.querySelectorAll(".chip").forEach((c) => c.dataset.agent === agent && c.setAttribute("aria-pressed", shown));
    drawAll();
  });
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
addEventListener("beforeprint", () => places.forEach(draw));
