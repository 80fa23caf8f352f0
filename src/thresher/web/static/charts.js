// The pictures. What they look like is in figures.json, which the library's own figures are made from too.
import { LABELS } from "./tools.js";

const CROWD = 2000; // arms

let shared;
const dark = matchMedia("(prefers-color-scheme: dark)");

// plotly comes after the text, from this server.
export function ready() {
  shared ??= Promise.all([
    fetch("/static/figures.json").then((reply) => reply.json()),
    new Promise((resolve, reject) => {
      const script = document.createElement("script");
      Object.assign(script, { src: "/static/plotly.js", onload: resolve, onerror: reject });
      document.head.append(script);
    }),
  ]).then(([look]) => look);
  return shared;
}

export function onScheme(redraw) {
  dark.addEventListener("change", redraw);
}

// Colours are names that begin with @ until a theme is known.
function painted(value, theme) {
  if (typeof value === "string") return value.startsWith("@") ? theme[value.slice(1)] : value;
  if (Array.isArray(value) && value[0] && typeof value[0] === "object") return value.map((part) => painted(part, theme));
  if (Array.isArray(value) || ArrayBuffer.isView(value) || value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, painted(part, theme)]));
}

const merged = (...parts) => parts.reduce((all, part) => {
  for (const [key, value] of Object.entries(part)) {
    const both = value && all[key] && typeof value === "object" && typeof all[key] === "object" && !Array.isArray(value);
    all[key] = both ? merged(structuredClone(all[key]), value) : value;
  }
  return all;
}, {});

async function draw(node, build) {
  const look = await ready();
  const theme = look.themes[dark.matches ? "dark" : "light"];
  const { traces, layout } = build(look);
  if (node.querySelector(".wait")) node.replaceChildren();
  const config = { displayModeBar: false, responsive: true, doubleClick: "reset" };
  await Plotly.react(node, traces.map((trace) => painted(trace, theme)), painted(layout, theme), config);
}

// A name may hold what plotly takes for markup: in hover texts it is told not to.
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

export const byMean = (table) => {
  const order = table.names.map((_, arm) => arm);
  const mean = table.mean;
  return order.sort((a, b) => (mean[b] ?? -Infinity) - (mean[a] ?? -Infinity) || a - b);
};

export function arms(node, table, threshold) {
  return draw(node, (look) => {
    const empty = () => LABELS.map(() => ({ x: [], y: [], text: [] }));
    const [spans, points] = [empty(), empty()];
    // So many points would each be a node of the page: sorted as they are, a line through them is a single one.
    const crowd = table.names.length > CROWD;
    const rings = { x: [], y: [] };
    const pulls = { x: [], y: [] };
    byMean(table).forEach((arm, rank) => {
      const label = table.label[arm];
      if (table.low[arm] !== null) {
        spans[label].x.push(rank + 1, rank + 1, null);
        spans[label].y.push(table.low[arm], table.high[arm], null);
      }
      if (table.mean[arm] !== null) {
        const [point, name, mean] = [points[label], plain(table.names[arm]), table.mean[arm]];
        point.x.push(rank + 1);
        point.y.push(mean);
        point.text.push(name);
        if (table.pending[arm]) { rings.x.push(rank + 1); rings.y.push(table.mean[arm]); }
      }
      pulls.x.push(rank + 1);
      pulls.y.push(table.seen[arm] + table.pending[arm]);
    });
    const many = table.names.length > 500;
    const size = table.names.length > 3000 ? 3 : many ? 4.5 : 7;
    const traces = [
      ...spans.map((span, label) => merged(look.whisker, { x: span.x, y: span.y, line: { color: `@${LABELS[label]}`, width: many ? 1 : 2 } })),
      ...points.map((point, label) => merged(look.point, { ...point, name: LABELS[label], hovertemplate: `%{text}<br>%{y:.4g}<extra>${LABELS[label]}</extra>`, ...(crowd ? { mode: "lines", line: { color: `@${LABELS[label]}`, width: 3 } } : { marker: { color: `@${LABELS[label]}`, size } }) })),
      merged(look.ring, rings, { marker: { size: size + 5 } }),
      merged(look.pulls, pulls, { hovertemplate: "%{y:,} pulls<extra></extra>" }),
    ];
    const range = [0.5, table.names.length + 0.5];
    const layout = merged(look.layout, {
      xaxis: merged(look.axis, { range, title: { text: "rank by mean" }, anchor: "y2", showgrid: false }),
      yaxis: merged(look.axis, { domain: [0.3, 1], title: { text: "mean" } }),
      yaxis2: merged(look.axis, { domain: [0, 0.2], title: { text: "pulls" }, rangemode: "tozero", nticks: 3 }),
      shapes: [merged(look.bar, { xref: "paper", x0: 0, x1: 1, y0: threshold, y1: threshold })],
    });
    return { traces, layout };
  });
}

export function history(node, points) {
  return draw(node, (look) => {
    const x = points.map((point) => point[0]);
    const line = (name, column, colour, dash) => merged(look.line, { x, y: points.map((point) => point[column]), name, line: { color: colour, dash }, hovertemplate: `%{y:,} ${name} after %{x:,} pulls<extra></extra>` });
    const traces = [line("above", 1, "@above", "solid"), line("below", 2, "@below", "solid"), line("certified", 3, "@accent", "dot")];
    const layout = merged(look.layout, { showlegend: true, legend: { orientation: "h", y: 1.18, x: 0 }, margin: { t: 26 }, xaxis: merged(look.axis, { title: { text: "pulls" }, rangemode: "tozero" }), yaxis: merged(look.axis, { title: { text: "arms" }, rangemode: "tozero" }) });
    return { traces, layout };
  });
}

export function rewards(node, data) {
  return draw(node, (look) => {
    const told = data.rewards.filter((each) => each.reward !== null);
    const hue = `@${data.row.label}`;
    let [sum, count] = [0, 0];
    const running = told.map((each) => (sum += each.reward) / (count += 1));
    const x = told.map((each) => each.number);
    const traces = [
      merged(look.point, { x, y: told.map((each) => each.reward), name: "reward", marker: { color: hue, size: 5, opacity: 0.35 }, hovertemplate: "pull %{x}: %{y:.4g}<extra></extra>" }),
      merged(look.line, { x: data.evidence.map((e) => e.number), y: data.evidence.map((e) => e.low), name: "interval", line: { color: hue, width: 1, dash: "dot" }, hoverinfo: "skip" }),
      merged(look.line, { x: data.evidence.map((e) => e.number), y: data.evidence.map((e) => e.high), name: "interval", line: { color: hue, width: 1, dash: "dot" }, hoverinfo: "skip" }),
      merged(look.line, { x, y: running, name: "mean", line: { color: hue }, hovertemplate: "mean of those shown %{y:.4g}<extra></extra>" }),
    ];
    const layout = merged(look.layout, { xaxis: merged(look.axis, { title: { text: "pulls of this arm" }, rangemode: "tozero" }), yaxis: merged(look.axis, { title: { text: "reward" } }), shapes: [merged(look.bar, { xref: "paper", x0: 0, x1: 1, y0: data.threshold, y1: data.threshold })] });
    return { traces, layout };
  });
}

export function evidence(node, data) {
  return draw(node, (look) => {
    const x = data.evidence.map((each) => each.number);
    const line = (side) => merged(look.line, { x, y: data.evidence.map((each) => 100 * each[side]), name: `for ${side}`, line: { color: `@${side}` }, hovertemplate: `%{y:.0f} % of the way for ${side}<extra></extra>` });
    const layout = merged(look.layout, { showlegend: true, legend: { orientation: "h", y: 1.18, x: 0 }, margin: { t: 26 }, xaxis: merged(look.axis, { title: { text: "pulls of this arm" } }), yaxis: merged(look.axis, { title: { text: "%" }, range: [0, 105] }) });
    return { traces: [line("above"), line("below")], layout };
  });
}
