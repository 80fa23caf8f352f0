// The charts. Their styles are in figures.json, which the library's own figures use, too.
import { pieces } from "./tools.js";

const CROWD = 2000; // arms; with more, a line replaces the points
const ROOM = 20; // pixels that an arm's name needs on an axis, where it may be rotated
const LINE = 28; // characters of a name in a line of a hover text

let shared;
const dark = matchMedia("screen and (prefers-color-scheme: dark)");

// Load plotly from this server, after the text of the page.
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

// Replace names of colours, which begin with @, by the theme's colours.
function painted(value, theme) {
  if (typeof value === "string") return value.startsWith("@") ? theme[value.slice(1)] : value;
  if (Array.isArray(value) && value[0] && typeof value[0] === "object") return value.map((part) => painted(part, theme));
  if (Array.isArray(value) || ArrayBuffer.isView(value) || value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, painted(part, theme)]));
}

const merged = (...parts) => parts.reduce((all, part) => {
  for (const [key, value] of Object.entries(part)) {
    const isNested = value && all[key] && typeof value === "object" && typeof all[key] === "object" && !Array.isArray(value);
    all[key] = isNested ? merged(structuredClone(all[key]), value) : value;
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

// Escape names in hover texts, because plotly takes < and & for markup.
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

// A name in lines that fit a phone.
function hover(name) {
  if (name.length <= LINE) return escaped(name);
  const lines = [""];
  for (const piece of pieces(name)) {
    for (const part of piece.length <= LINE ? [piece] : piece) { // a piece that is too long may be broken anywhere
      if (lines.at(-1) && lines.at(-1).length + part.length > LINE) lines.push("");
      lines.push(lines.pop() + part);
    }
  }
  return lines.map(escaped).join("<br>");
}

// The best arms first, by their means, shares or differences.
export const byEstimate = ({ names, estimate }, { asks, lower_is_better }) => {
  const sign = lower_is_better && asks !== "share" ? -1 : 1;
  const worth = (arm) => (estimate[arm] === null ? -Infinity : sign * estimate[arm]);
  return names.map((_, arm) => arm).sort((a, b) => (worth(a) === worth(b) ? a - b : worth(b) - worth(a)));
};

// The line at the bar, the band around it and, where differences are drawn, the line at the baseline.
const lines = (look, head, more = {}) => head.lines.map(([kind, line]) => merged(look[kind], line, more));

// All intervals of a colour are one path, because plotly makes a node for every piece of a line with gaps, which takes seconds.
function whiskers(look, table, order, width) {
  const paths = table.standings.map(() => []);
  order.forEach((arm, rank) => { if (table.low[arm] !== null && table.estimate[arm] !== null) paths[table.standing[arm]].push(`M${rank + 1},${table.low[arm]}V${table.high[arm]}`); });
  return paths.flatMap((path, code) => (path.length ? [merged(look.whisker, { path: path.join(""), line: { color: `@${table.standings[code]}`, width } })] : []));
}

function dots(look, table, order, size, { hover: number }) {
  const crowd = order.length > CROWD; // each point would be a node; the points are sorted, so a line through them looks the same
  return table.standings.flatMap((standing, code) => {
    const ranks = [];
    order.forEach((arm, rank) => { if (table.standing[arm] === code && table.estimate[arm] !== null) ranks.push(rank); });
    if (!ranks.length) return [];
    const colour = `@${standing}`;
    const symbol = ranks.map((rank) => (table.certified[order[rank]] ? "diamond" : "circle"));
    const marks = crowd ? { mode: "lines", line: { color: colour, width: 3 } } : { marker: { color: colour, size, symbol } };
    const [x, y, text] = [ranks.map((rank) => rank + 1), ranks.map((rank) => table.estimate[order[rank]]), ranks.map((rank) => hover(table.names[order[rank]]))];
    return [merged(look.point, { x, y, text, name: standing, hovertemplate: `%{text}<br>${number}<extra>${standing}</extra>`, ...marks })];
  });
}

// The names of the arms, if there are few and the screen is wide enough; otherwise their ranks.
function armAxis(look, node, table, order) {
  if (!table.ticks || node.clientWidth < ROOM * order.length) return { title: { text: "rank" }, tickvals: null, ticktext: null };
  return { ...look.names, title: { text: "" }, tickvals: order.map((_, rank) => rank + 1), ticktext: order.map((arm) => table.ticks[arm].split("\n").map(escaped).join("<br>")) };
}

export function arms(node, table, head) {
  return draw(node, (look) => {
    const order = byEstimate(table, head).filter((arm) => table.names[arm] !== head.baseline);
    const seen = order.some((arm) => table.estimate[arm] !== null);
    const empty = head.asks === "share" ? [0, 1] : head.asks === "mean" && head.bounds ? head.bounds : [head.bar - 1, head.bar + 1];
    const many = order.length > 500;
    const size = order.length > 3000 ? 3 : many ? 4.5 : 7;
    const rings = order.map((arm, rank) => [rank + 1, table.estimate[arm], table.pending[arm]]).filter(([, y, pending]) => pending && y !== null);
    const x = order.map((_, rank) => rank + 1);
    const traces = [
      ...dots(look, table, order, size, head),
      merged(look.ring, { x: rings.map(([rank]) => rank), y: rings.map(([, y]) => y), marker: { size: size + 5 } }),
      merged(look.pulls, { x, y: order.map((arm) => table.seen[arm]), hovertemplate: "%{y:,} rewards<extra></extra>" }),
      merged(look.pending, { x, y: order.map((arm) => table.seen[arm] + table.pending[arm]), hovertemplate: "%{y:,} with pending ones<extra></extra>" }),
    ];
    const layout = merged(look.layout, {
      xaxis: merged(look.axis, { range: [0.5, order.length + 0.5], anchor: "y2", showgrid: false }, armAxis(look, node, table, order)),
      yaxis: merged(look.axis, { domain: [0.3, 1] }, head.axis, seen ? {} : { range: empty }),
      yaxis2: merged(look.axis, { domain: [0, 0.2], title: { text: "pulls" }, rangemode: "tozero", nticks: 3 }),
      annotations: seen ? [] : [merged(look.empty, { text: "No reward has come back yet." })],
      shapes: [...whiskers(look, table, order, many ? 1 : 2), ...lines(look, head)],
    });
    return { traces, layout };
  });
}

export function history(node, points) {
  return draw(node, (look) => {
    const x = points.map((point) => point[0]);
    const line = (name, column, colour, dash) => merged(look.line, { x, y: points.map((point) => point[column]), name, line: { color: colour, dash }, hovertemplate: `%{y:,} ${name} after %{x:,} pulls<extra></extra>` });
    const traces = [line("reached", 1, "@reaches", "solid"), line("missed", 2, "@misses", "solid"), line("open", 3, "@open", "dot")];
    const layout = merged(look.layout, { showlegend: true, legend: { orientation: "h", y: 1.18, x: -0.08, font: { size: 11 } }, margin: { t: 26 }, xaxis: merged(look.axis, { title: { text: "pulls" }, rangemode: "tozero" }), yaxis: merged(look.axis, { title: { text: "arms" }, rangemode: "tozero" }) });
    return { traces, layout };
  });
}

// Rewards against the limit or the bar. With a baseline, they are differences from it, or its multiples. A share has an
// axis of its own, with its interval.
export function rewards(node, data) {
  return draw(node, (look) => {
    const isBaseline = data.row.standing === "baseline";
    const told = data.rewards.filter((pull) => pull.value !== null && pull.state !== "outside");
    const hue = `@${data.row.standing}`;
    const shares = data.asks === "share" && !isBaseline;
    let [sum, count] = [0, 0];
    const running = told.map((pull) => (sum += shares ? Number(pull.within) : pull.value) / (count += 1));
    const x = told.map((pull) => pull.number);
    const axis = shares ? { yaxis: "y2" } : {};
    const end = (side) => merged(look.line, { x: data.evidence.map((point) => point.number), y: data.evidence.map((point) => point[side]), name: "interval", line: { color: hue, width: 1, dash: "dot" }, hoverinfo: "skip", ...axis });
    const traces = [
      merged(look.point, { x, y: told.map((pull) => pull.value), name: "reward", marker: { color: hue, size: 5, opacity: 0.35 }, hovertemplate: "pull %{x}: %{y:.4g}<extra></extra>" }),
      end("low"), end("high"),
      merged(look.line, { x, y: running, name: "mean", line: { color: hue }, hovertemplate: `${shares ? "share" : "mean"} of the rewards shown ${shares ? "%{y:.2%}" : "%{y:.4g}"}<extra></extra>`, ...axis }),
    ];
    const title = data.ratio !== null ? "times the baseline" : data.baseline !== null && !isBaseline ? "difference" : "reward";
    const line = (y, text) => merged(look.bar, { xref: "paper", x0: 0, x1: 1, y0: y, y1: y, label: { text: escaped(text), yanchor: "top" } });
    const limit = data.ratio ?? data.at_least ?? data.at_most ?? (data.lower_is_better ? -data.margin : data.margin);
    const layout = merged(look.layout, {
      xaxis: merged(look.axis, { title: { text: "pulls of this arm" }, rangemode: "tozero" }, shares ? { anchor: "y2" } : {}),
      yaxis: merged(look.axis, { title: { text: title } }, data.amounts, shares ? { domain: [0.45, 1] } : {}),
      shapes: isBaseline ? [] : shares ? [line(limit, "limit"), ...lines(look, data, { yref: "y2" })] : lines(look, data),
      annotations: isBaseline && !told.length ? [merged(look.empty, { text: "Its rewards are in the pairs of the other arms." })] : [],
    });
    if (shares) layout.yaxis2 = merged(look.axis, { title: { text: "share within" }, tickformat: ".0%", domain: [0, 0.36], range: [-0.03, 1.03] });
    return { traces, layout };
  });
}

// The evidence for either answer: a capital, which begins at 1, and settles the arm at the level.
export function evidence(node, data) {
  return draw(node, (look) => {
    const x = data.evidence.map((point) => point.number);
    const line = (side, colour) => merged(look.line, { x, y: data.evidence.map((point) => Math.min(Math.max(point[side], 0.1), 2 * data.level)), name: side, line: { color: colour }, hovertemplate: `%{y:,.3~g} for ${side} it<extra></extra>` });
    const range = [-1, Math.log10(2 * data.level)];
    const level = merged(look.bar, { xref: "paper", x0: 0, x1: 1, y0: data.level, y1: data.level, label: { text: "settled", yanchor: "top" } });
    const layout = merged(look.layout, { showlegend: true, legend: { orientation: "h", y: 1.18, x: 0 }, margin: { t: 26 }, xaxis: merged(look.axis, { title: { text: "pulls of this arm" } }), yaxis: merged(look.axis, { type: "log", dtick: 1, title: { text: "evidence" }, range }), shapes: [level] });
    return { traces: [line("reaching", "@reaches"), line("missing", "@misses")], layout };
  });
}
