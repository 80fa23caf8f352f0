// The table of arms: its selection, its order and its rows.
import { SIGNS, at, breakable, figure, grouped, make, seen, set, standingOf } from "./tools.js";
import { byEstimate } from "./charts.js";

const isBaselineArm = (table, arm) => standingOf(table, arm) === "baseline";
const TESTS = {
  pending: (t, arm) => t.pending[arm] > 0,
  failing: (t, arm) => t.failures[arm] > 0,
};

export function chosen(table, head, { text, standing, sort }) {
  const wanted = text.trim().toLowerCase();
  const fits = TESTS[standing] ?? ((t, arm) => !standing || standingOf(t, arm) === standing);
  let order = sort === "mean" || sort === "answer" ? byEstimate(table, head) : table.names.map((_, arm) => arm);
  if (sort === "answer") order.sort((a, b) => table.standing[a] - table.standing[b]); // as in the verdict
  if (sort === "name") order.sort((a, b) => (table.names[a] < table.names[b] ? -1 : 1));
  if (sort === "seen" || sort === "left") order.sort((a, b) => (table[sort][b] ?? -1) - (table[sort][a] ?? -1) || a - b);
  order = order.filter((arm) => fits(table, arm));
  if (head.baseline !== null) order = [...order.filter((arm) => isBaselineArm(table, arm)), ...order.filter((arm) => !isBaselineArm(table, arm))];
  return wanted ? order.filter((arm) => table.names[arm].toLowerCase().includes(wanted)) : order;
}

const SVG = "http://www.w3.org/2000/svg";
function shape(tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

// All rows share one scale: 0 to 1 for shares, the bounds for means, or without bounds the range of the means. Differences
// are small compared with the bounds, so their scale is the range of the intervals, with zero.
export function scale(table, head) {
  if (head.asks === "share") return [0, 1];
  if (head.bounds && head.asks === "mean") return head.bounds;
  let [low, high] = head.edges;
  const widen = (x) => { if (x !== null) [low, high] = [Math.min(low, x), Math.max(high, x)]; };
  table.estimate.forEach(widen);
  if (head.asks === "difference") {
    widen(0);
    table.estimate.forEach((x, arm) => { if (x !== null) { widen(table.low[arm]); widen(table.high[arm]); } });
  }
  return [low, high];
}

function whisker(table, arm, head, [low, high]) {
  const svg = shape("svg", { class: "whisker", viewBox: "0 0 200 16", preserveAspectRatio: "none", "aria-hidden": "true" });
  const x = (value) => 3 + (194 * (value - low)) / (high - low || 1);
  if (head.tolerance) svg.append(shape("rect", { class: "band", x: x(head.edges[0]), width: x(head.edges[1]) - x(head.edges[0]), y: 1, height: 14 }));
  svg.append(shape("line", { class: "track", x1: 3, x2: 197, y1: 8, y2: 8 }));
  if (table.low[arm] !== null) svg.append(shape("line", { class: "span", x1: x(table.low[arm]), x2: x(table.high[arm]), y1: 8, y2: 8 }));
  if (head.asks === "difference") svg.append(shape("line", { class: "zero", x1: x(0), x2: x(0), y1: 1, y2: 15 }));
  svg.append(shape("line", { class: "mark", x1: x(head.bar), x2: x(head.bar), y1: 1, y2: 15 }));
  if (table.estimate[arm] !== null) svg.append(shape("ellipse", { class: "dot", cx: x(table.estimate[arm]), cy: 8, rx: 3.5, ry: 3.5 }));
  return svg;
}

// About how many pulls are left, and a bar of how far the arm is.
function left(table, arm) {
  const pulls = table.left[arm];
  if (!pulls || standingOf(table, arm) !== "open") return "";
  const fill = make("i");
  fill.style.width = `${Math.round((100 * table.seen[arm]) / (table.seen[arm] + pulls))}%`;
  return [make("span", { class: "way" }, fill), ` ~ ${grouped(Number(pulls.toPrecision(2)))}`];
}

function armRow(table, arm, head, ends, address) {
  const [standing, reached, qualifier] = [standingOf(table, arm), table.reached[arm], table.qualifier[arm]];
  const isBaseline = standing === "baseline"; // which the other arms are compared with
  const cell = make("td", { class: "standing" }, make("span", { class: "sign" }, `${SIGNS[standing]} ${standing}${qualifier && `, ${qualifier}`}`));
  if (standing === "open" && reached !== null) cell.append(make("span", { class: "quiet" }, `, so far ${reached ? SIGNS.reaches : SIGNS.misses}`));
  if (table.outside[arm] && !isBaseline) cell.append(make("span", { class: "quiet", title: "a reward lay outside the bounds" }, " not certified"));
  const [key, ...numbers] = table.texts[arm].map((text) => parts(text, head.unit));
  const details = Object.values(head.details).map((title, index) => figure(title, numbers[index]));
  return make("tr", { class: standing },
    make("td", { class: "name" }, make("a", { href: address }, ...breakable(table.names[arm]))), cell,
    isBaseline ? make("td", { class: "n key" }) : figure(head.estimate_head, key, "key"),
    make("td", { class: "line" }, ...(isBaseline && head.asks === "share" ? [] : [whisker(table, arm, head, ends)])), ...details,
    figure(head.cases === null ? "pulls" : "cases", seen(table.seen[arm], head.cases)), figure("left", left(table, arm), "left"),
    figure("pending", table.pending[arm] ? grouped(table.pending[arm]) : "", "minor"), figure("failed", table.failures[arm] ? grouped(table.failures[arm]) : "", "minor"));
}

// The unit has its own element: where it stands above the table, it is hidden here.
function parts(text, unit) {
  return unit && text.endsWith(` ${unit}`) ? [text.slice(0, -1 - unit.length), make("span", { class: "unit" }, ` ${unit}`)] : [text];
}

// Rows that did not change stay as they are, so that the selection, the focus and the pointer are not lost.
export class Rows {
  constructor(body, address) { Object.assign(this, { body, address, made: new Map() }); }

  // The headings. Some questions have more columns, and long units need wide ones.
  headings(head) {
    const [table, titles] = [this.body.parentNode, Object.values(head.details)];
    const text = JSON.stringify([titles, head.estimate_head, head.cases === null, head.unit]);
    if (this.headed === text) return;
    this.headed = text;
    const row = (tag, more, ends) => [...Array(4).fill(0).map(() => make(tag)), ...titles.map(() => make(tag, more)), ...ends];
    table.classList.toggle("more", titles.length > 0);
    table.querySelector("colgroup").replaceChildren(...row("col", { class: "c-more" }, [make("col", { class: "c-seen" }), make("col", { class: "c-left" }), ...["", ""].map(() => make("col", { class: "c-minor" }))]));
    table.querySelector("thead tr").replaceChildren(...[["arm"], ["answer"], [head.estimate_head, "n"], ["against the bar", "line"], ...titles.map((title) => [title, "n"]),
      [head.cases === null ? "pulls" : "cases", "n"], ["left", "n left"], ["pending", "n minor"], ["failed", "n minor"]].map(([title, kind]) => make("th", { scope: "col", ...(kind ? { class: kind } : {}) }, title)));
    const [unit, numbers] = [head.unit === "s" ? "" : head.unit ?? "", titles.length + (head.asks !== "share")];
    const bare = unit.length * numbers > 16; // with units in all cells, there would be no room for names
    table.classList.toggle("bare", bare);
    set("unit", bare ? `in ${unit}` : "");
    const wide = unit && !bare ? `calc(5.2rem + ${unit.length}ch)` : head.unit === "s" ? "6rem" : "";
    for (const col of table.querySelectorAll(head.asks === "share" ? ".c-more" : ".c-more, col:nth-child(3)")) col.style.width = wide;
    at("sort").options[1].textContent = `by ${{ mean: "mean", share: "share", difference: "difference" }[head.asks]}`;
  }

  clear() {
    this.body.replaceChildren();
    this.made = new Map();
  }

  show(table, arms, head) {
    const ends = scale(table, head);
    const made = new Map();
    arms.forEach((arm, index) => {
      const text = JSON.stringify([ends, ...table.columns.map((name) => table[name][arm])]);
      let row = this.made.get(arm);
      if (row?.text !== text) row = { text, node: this.renewed(row?.node, armRow(table, arm, head, ends, this.address(table.names[arm]))) };
      made.set(arm, row);
      if (this.body.children[index] !== row.node) this.body.insertBefore(row.node, this.body.children[index] ?? null);
    });
    while (this.body.children.length > arms.length) this.body.lastChild.remove();
    this.made = made;
  }

  // Keep the cell with the link, because it may have the focus.
  renewed(old, fresh) {
    if (!old) return fresh;
    old.className = fresh.className;
    while (old.children.length > 1) old.lastChild.remove();
    while (fresh.children.length > 1) old.append(fresh.children[1]);
    return old;
  }
}
