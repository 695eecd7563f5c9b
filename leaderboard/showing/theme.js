"use strict";
// How figures look in the colours of a page: shared by pages that stand alone and by those of a site.
const CONFIG = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: "reset" };
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

// Names of groups in `faded` are drawn pale.
function themed(layout, faded = new Set()) {
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
    annotations: labels.filter((label) => !label.name || !NARROW.matches).map((label) => ({ ...label, opacity: faded.has(label.name) ? 0.35 : 1 })),
    showlegend: false,
    hovermode: "closest",
    dragmode: false,
    hoverlabel: { bgcolor: colour("--paper"), font: { color: colour("--ink") } },
    xaxis: { ...axis, ...titled(layout.xaxis) },
    yaxis: { ...axis, ...titled(layout.yaxis), ...(NARROW.matches ? { side: "left" } : {}) },
  };
}
