// The charts. Their look is defined in figures.json, which the library's own figures use, too.
import { LABELS, pieces } from "./tools.js";

const CROWD = 2000; // arms
const LINE = 28; // characters of a name in a line of a hover text

let shared;
const dark = matchMedia("screen and (prefers-color-scheme: dark)");

// Plotly is loaded after the text, from this server.
export function ready() {
  shared ??= Promise.all([
    fetch("/static/figures.json").then((reply) => reply.json()),
    new Promise((resolve, reject) => {
      const script = document.createElement("script");
      Object.assign(script, { src: document.getElementById("plotly").href, onload: resolve, onerror: reject });
      document.head.append(script);
    }),
  ]).then(([look]) => look);
  return shared;
}

export function onScheme(redraw) {
  dark.addEventListener("change", redraw);
}

// Colours are names that begin with @ until the theme is known.
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

// Plotly takes some text for markup: escape names in hover texts.
const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

// A name in lines that fit a phone.
function hover(name) {
  if (name.length <= LINE) return plain(name);
  const lines = [""];
  for (const piece of pieces(name)) {
    for (const part of piece.length <= LINE ? [piece] : piece) { // a piece that is too long is broken anywhere
      if (lines.at(-1) && lines.at(-1).length + part.length > LINE) lines.push("");
      lines.push(lines.pop() + part);
    }
  }
  return lines.map(plain).join("<br>");
}

export const byMean = (table) => {
  const order = table.names.map((_, arm) => arm);
  const mean = table.mean;
  return order.sort((a, b) => (mean[b] ?? -Infinity) - (mean[a] ?? -Infinity) || a - b);
};

// All intervals of a label are one path: plotly makes a node for every piece of a line with gaps, which takes seconds.
function whiskers(look, table, order, width) {
  const paths = LABELS.map(() => []);
  order.forEach((arm, rank) => { if (table.low[arm] !== null && table.mean[arm] !== null) paths[table.label[arm]].push(`M${rank + 1},${table.low[arm]}V${table.high[arm]}`); });
  return paths.flatMap((path, label) => (path.length ? [merged(look.whisker, { path: path.join(""), line: { color: `@${LABELS[label]}`, width } })] : []));
}

function dots(look, table, order, size) {
  const crowd = order.length > CROWD; // each point would be a node, too; the points are sorted, so draw a line through them
  return LABELS.flatMap((label, code) => {
    const ranks = [];
    order.forEach((arm, rank) => { if (table.label[arm] === code && table.mean[arm] !== null) ranks.push(rank); });
    if (!ranks.length) return [];
    const colour = `@${label}`;
    const symbol = ranks.map((rank) => (table.certified[order[rank]] ? "diamond" : "circle"));
    const style = crowd ? { mode: "lines", line: { color: colour, width: 3 } } : { marker: { color: colour, size, symbol } };
    const [x, y, text] = [ranks.map((rank) => rank + 1), ranks.map((rank) => table.mean[order[rank]]), ranks.map((rank) => hover(table.names[order[rank]]))];
    return [merged(look.point, { x, y, text, name: label, hovertemplate: `%{text}<br>%{y:.4g}<extra>${label}</extra>`, ...style })];
  });
}

export function arms(node, table, { threshold, bounds }) {
  return draw(node, (look) => {
    const order = byMean(table);
    const seen = order.some((arm) => table.mean[arm] !== null);
    const many = order.length > 500;
    const size = order.length > 3000 ? 3 : many ? 4.5 : 7;
    const rings = order.map((arm, rank) => [rank + 1, table.mean[arm], table.pending[arm]]).filter(([, mean, pending]) => pending && mean !== null);
    const x = order.map((_, rank) => rank + 1);
    const traces = [
      ...dots(look, table, order, size),
      merged(look.ring, { x: rings.map(([rank]) => rank), y: rings.map(([, mean]) => mean), marker: { size: size + 5 } }),
      merged(look.pulls, { x, y: order.map((arm) => table.seen[arm]), hovertemplate: "%{y:,} rewards<extra></extra>" }),
      merged(look.pending, { x, y: order.map((arm) => table.seen[arm] + table.pending[arm]), hovertemplate: "%{y:,} with pending ones<extra></extra>" }),
    ];
    const layout = merged(look.layout, {
      xaxis: merged(look.axis, { range: [0.5, order.length + 0.5], title: { text: "rank by mean" }, anchor: "y2", showgrid: false }),
      yaxis: merged(look.axis, { domain: [0.3, 1], title: { text: "mean" } }, seen ? {} : { range: bounds ?? [threshold - 1, threshold + 1] }),
      yaxis2: merged(look.axis, { domain: [0, 0.2], title: { text: "pulls" }, rangemode: "tozero", nticks: 3 }),
      annotations: seen ? [] : [merged(look.empty, { text: "No reward has come back yet." })],
      shapes: [...whiskers(look, table, order, many ? 1 : 2), merged(look.bar, { xref: "paper", x0: 0, x1: 1, y0: threshold, y1: threshold, label: { text: `bar ${threshold}` } })],
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
    const told = data.rewards.filter((each) => each.reward !== null && each.state !== "outside");
    const hue = `@${data.row.label}`;
    let [sum, count] = [0, 0];
    const running = told.map((each) => (sum += each.reward) / (count += 1));
    const x = told.map((each) => each.number);
    const traces = [
      merged(look.point, { x, y: told.map((each) => each.reward), name: "reward", marker: { color: hue, size: 5, opacity: 0.35 }, hovertemplate: "pull %{x}: %{y:.4g}<extra></extra>" }),
      merged(look.line, { x: data.evidence.map((e) => e.number), y: data.evidence.map((e) => e.low), name: "interval", line: { color: hue, width: 1, dash: "dot" }, hoverinfo: "skip" }),
      merged(look.line, { x: data.evidence.map((e) => e.number), y: data.evidence.map((e) => e.high), name: "interval", line: { color: hue, width: 1, dash: "dot" }, hoverinfo: "skip" }),
      merged(look.line, { x, y: running, name: "mean", line: { color: hue }, hovertemplate: "mean of the rewards shown %{y:.4g}<extra></extra>" }),
    ];
    const layout = merged(look.layout, { xaxis: merged(look.axis, { title: { text: "pulls of this arm" }, rangemode: "tozero" }), yaxis: merged(look.axis, { title: { text: "reward" } }), shapes: [merged(look.bar, { xref: "paper", x0: 0, x1: 1, y0: data.threshold, y1: data.threshold })] });
    return { traces, layout };
  });
}

export function evidence(node, data) {
  return draw(node, (look) => {
    const x = data.evidence.map((each) => each.number);
    const line = (side) => merged(look.line, { x, y: data.evidence.map((each) => 100 * each[side]), name: `for ${side}`, line: { color: `@${side}` }, hovertemplate: `%{y:.0f} % of the evidence for ${side}<extra></extra>` });
    const layout = merged(look.layout, { showlegend: true, legend: { orientation: "h", y: 1.18, x: 0 }, margin: { t: 26 }, xaxis: merged(look.axis, { title: { text: "pulls of this arm" } }), yaxis: merged(look.axis, { title: { text: "%" }, range: [0, 105] }) });
    return { traces: [line("above"), line("below")], layout };
  });
}
