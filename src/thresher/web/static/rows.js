// The table of arms: which ones, in which order, and what a row looks like.
import { LABELS, SIGNS, breakable, figure, grouped, make, seen, short } from "./tools.js";
import { byMean } from "./charts.js";

export const COLUMNS = ["label", "certified", "mean", "low", "high", "seen", "pending", "failures", "progress", "outside"];
const TESTS = {
  certified: (t, arm) => t.certified[arm] === 1,
  open: (t, arm) => !t.certified[arm] && !t.outside[arm] && LABELS[t.label[arm]] !== "retired",
  pending: (t, arm) => t.pending[arm] > 0,
  failing: (t, arm) => t.failures[arm] > 0,
};

export function chosen(table, { text, label, sort }) {
  const wanted = text.trim().toLowerCase();
  const fits = TESTS[label] ?? ((t, arm) => !label || LABELS[t.label[arm]] === label);
  let order = sort === "mean" ? byMean(table) : table.names.map((_, arm) => arm);
  if (sort === "name") order.sort((a, b) => (table.names[a] < table.names[b] ? -1 : 1));
  if (sort === "seen" || sort === "progress") order.sort((a, b) => (table[sort][b] ?? 0) - (table[sort][a] ?? 0) || a - b);
  order = order.filter((arm) => fits(table, arm));
  return wanted ? order.filter((arm) => table.names[arm].toLowerCase().includes(wanted)) : order;
}

const SVG = "http://www.w3.org/2000/svg";
function shape(tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

// Without bounds the scale is the range of the means. All rows share one scale.
export function scale(table, head) {
  if (head.bounds) return head.bounds;
  let [low, high] = [head.threshold, head.threshold];
  for (const mean of table.mean) if (mean !== null) [low, high] = [Math.min(low, mean), Math.max(high, mean)];
  return [low, high];
}

function whisker(table, arm, head, [low, high]) {
  const svg = shape("svg", { class: "whisker", viewBox: "0 0 200 16", preserveAspectRatio: "none", "aria-hidden": "true" });
  const x = (value) => 3 + (194 * (value - low)) / (high - low || 1);
  svg.append(shape("line", { class: "track", x1: 3, x2: 197, y1: 8, y2: 8 }));
  if (table.low[arm] !== null) svg.append(shape("line", { class: "span", x1: x(table.low[arm]), x2: x(table.high[arm]), y1: 8, y2: 8 }));
  svg.append(shape("line", { class: "mark", x1: x(head.threshold), x2: x(head.threshold), y1: 1, y2: 15 }));
  if (table.mean[arm] !== null) svg.append(shape("ellipse", { class: "dot", cx: x(table.mean[arm]), cy: 8, rx: 3.5, ry: 3.5 }));
  return svg;
}

function armRow(table, arm, head, ends, address) {
  const label = LABELS[table.label[arm]];
  const sure = table.certified[arm] ? (table.seen[arm] === head.cases ? " ✓ exact" : " ✓") : "";
  const way = make("span", { class: "way", title: "evidence, as a share of what settles the arm" });
  if (table.progress[arm] !== null && !sure && !table.outside[arm] && label !== "retired") {
    const fill = make("i");
    fill.style.width = `${Math.round(100 * table.progress[arm])}%`;
    way.append(fill);
  }
  const cell = make("td", { class: "label" }, make("span", { class: "sign" }, `${SIGNS[label]} ${label}${sure} `));
  if (way.firstChild) cell.append(way);
  if (table.outside[arm]) cell.append(make("span", { class: "quiet", title: "a reward lay outside the bounds" }, "not certified"));
  if (sure) cell.append(make("span", { class: "hidden" }, "certified"));
  return make("tr", { class: label },
    make("td", { class: "name" }, make("a", { href: address }, ...breakable(table.names[arm]))), cell,
    figure("mean", short(table.mean[arm]), "key"), make("td", { class: "line" }, whisker(table, arm, head, ends)),
    figure(head.cases === null ? "pulls" : "cases", seen(table.seen[arm], head.cases)),
    figure("pending", table.pending[arm] ? grouped(table.pending[arm]) : ""), figure("failed", table.failures[arm] ? grouped(table.failures[arm]) : ""));
}

// Rows that did not change are left alone, so that selection, focus and hover survive.
export class Rows {
  constructor(body, address) { Object.assign(this, { body, address, made: new Map() }); }

  show(table, arms, head) {
    const ends = scale(table, head);
    const made = new Map();
    arms.forEach((arm, place) => {
      const text = JSON.stringify([ends, ...COLUMNS.map((name) => table[name][arm])]);
      let row = this.made.get(arm);
      if (row?.text !== text) row = { text, node: this.renewed(row?.node, armRow(table, arm, head, ends, this.address(table.names[arm]))) };
      made.set(arm, row);
      if (this.body.children[place] !== row.node) this.body.insertBefore(row.node, this.body.children[place] ?? null);
    });
    while (this.body.children.length > arms.length) this.body.lastChild.remove();
    this.made = made;
  }

  // Keep the cell with the link: it may have the focus.
  renewed(old, fresh) {
    if (!old) return fresh;
    old.className = fresh.className;
    while (old.children.length > 1) old.lastChild.remove();
    while (fresh.children.length > 1) old.append(fresh.children[1]);
    return old;
  }
}
