// Charts: the series that Python computed, drawn when they come into view, in the colours of agents and of the page.
const UNIT = 1000;
const SHOWN_AT_FIRST = 8;
const FRONT = { colour: "#868b94", symbol: "line-ew", width: 2 };
const DRAWN = new Map();
const plotted = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const clear = (colour, share) => `rgba(${[1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)).join(",")},${share})`;

function tracesOf(spec, shown) {
  const parts = [];
  for (const [who, grid, ...values] of spec.series) {
    const front = typeof who === "string";
    if (!front && !shown(who)) continue;
    const own = front ? { ...FRONT, label: who, dash: who === "front" ? "solid" : "dash" } : SITE.agents[who];
    const [y, low, high] = values.map((line) => line.map((value) => value / UNIT));
    const x = SITE.grids[grid];
    const said = y.map((value, i) => `${value.toFixed(3)}${low ? ` [${low[i].toFixed(3)}, ${high[i].toFixed(3)}]` : ""}`);
    const common = {
      type: "scatter", x, y, customdata: said, name: plotted(own.label), cliponaxis: false,
      hovertemplate: `<b>%{fullData.name}</b><br>%{customdata}<br>${plotted(spec.x.title)} %{x:,.4~r}<extra></extra>`,
    };
    const marker = { symbol: own.symbol, size: x.length === 1 ? 9 : 5.5, color: own.colour };
    if (x.length === 1) {
      const bars = low ? { type: "data", symmetric: false, array: [high[0] - y[0]], arrayminus: [y[0] - low[0]], thickness: 1.2, width: 0, color: own.colour } : undefined;
      parts.push([2, { ...common, mode: "markers", marker, error_y: bars }]);
      continue;
    }
    if (low) parts.push([0, { ...common, x: [...x, ...[...x].reverse()], y: [...low, ...[...high].reverse()], mode: "lines", fill: "toself", fillcolor: clear(own.colour, 0.16), line: { width: 0 }, hoverinfo: "skip", hovertemplate: null }]);
    const marked = !front && x.length <= 12 && own.colour !== FRONT.colour;
    parts.push([1, { ...common, mode: marked ? "lines+markers" : "lines", line: { color: own.colour, width: 2, dash: own.dash }, marker }]);
  }
  return parts.sort((a, b) => a[0] - b[0]).map(([, trace]) => trace);
}

const axisOf = ({ title, type, range, ticks, texts }) => ({ title: { text: plotted(title) }, type, range, ...(ticks ? { tickvals: ticks, ticktext: texts, tickangle: 0 } : {}) });

function layoutOf(spec) {
  const grey = { color: FRONT.colour, width: 1, dash: "dot" };
  const top = Math.max(...spec.levels.map(([y]) => y));
  return {
    xaxis: axisOf(spec.x),
    yaxis: axisOf(spec.y),
    shapes: spec.levels.map(([y]) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, layer: "below", line: grey })),
    annotations: spec.levels.map(([y, name]) => ({
      xref: "paper", x: y === top ? 0 : 1, xanchor: y === top ? "left" : "right", y, yanchor: "bottom", text: plotted(name), showarrow: false,
      font: { size: 11, color: getComputedStyle(document.documentElement).getPropertyValue("--quiet").trim() },
    })),
  };
}

// The fronts and the agents that a chart can show, the best first where an order is given.
const agentsOf = (specs) => [...new Set(specs.flatMap((spec) => spec.series.map(([who]) => who)).filter((who) => typeof who !== "string"))];

// A figure with a choice of charts and buttons that show and hide agents.
// `charts` are [name, spec] or [name, plotly figure]; `agents` in the order of their buttons; the first few are shown.
function figure(place, title, charts, agents, { first = SHOWN_AT_FIRST, chosen = 0, note } = {}) {
  const hidden = new Set(agents.slice(first));
  const chart = el("div", { class: "chart", role: "img" });
  let spec = charts[chosen];
  const draw = () => {
    chart.setAttribute("aria-label", `${title}: ${spec[0]}`);
    const [data, layout] = spec[1].series ? [tracesOf(spec[1], (who) => !hidden.has(who)), layoutOf(spec[1])] : readyMade(spec[1], hidden);
    Plotly.react(chart, data, themed(layout), CONFIG);
  };
  const redraw = () => DRAWN.has(chart) && draw();
  const select = charts.length > 1 ? choice("show", charts.map(([name], i) => [i, name]), (i) => { spec = charts[i]; redraw(); }, chosen) : null;
  const chips = agents.map((agent) => {
    const chip = el("button", { type: "button", class: "chip", "aria-pressed": String(!hidden.has(agent)), title: labelOf(agent), on: { click: () => set(chip, agent, hidden.has(agent)) } }, swatch(agent), shortened(labelOf(agent)));
    return chip;
  });
  const set = (chip, agent, on) => { on ? hidden.delete(agent) : hidden.add(agent); chip.setAttribute("aria-pressed", String(on)); redraw(); };
  const every = (on) => agents.forEach((agent, i) => set(chips[i], agent, on));
  const group = agents.length > 1 ? el("div", { class: "chips", role: "group", "aria-label": "agents shown" }, chips,
    el("button", { type: "button", class: "plain", on: { click: () => every(true) } }, "all"),
    el("button", { type: "button", class: "plain", on: { click: () => every(false) } }, "none")) : null;
  place.replaceChildren(el("figure", {}, el("figcaption", {}, el("h3", {}, title), select), chart, group, note ? el("p", { class: "note" }, note) : null));
  DRAWN.delete(chart);
  const seen = new IntersectionObserver(([entry]) => {
    if (!entry.isIntersecting) return;
    seen.disconnect();
    DRAWN.set(chart, draw);
    draw();
  }, { rootMargin: "400px" });
  seen.observe(chart);
}

// A figure that Python drew: theory's black lines take the colour of text.
function readyMade(made, hidden) {
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  const names = new Set([...hidden].map(labelOf));
  const data = made.data.map((trace) => ({ ...trace, visible: !names.has(trace.meta), ...(trace.line?.color === "black" ? { line: { ...trace.line, color: ink } } : {}) }));
  return [data, made.layout];
}

const again = () => DRAWN.forEach((draw, chart) => (chart.isConnected ? draw() : DRAWN.delete(chart)));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
NARROW.addEventListener("change", again);
