// The page of one study: first its text, then the charts. After that, only changes arrive.
import { Cases } from "./cases.js";
import * as charts from "./charts.js";
import { Rows, chosen } from "./rows.js";
import { follow } from "./stream.js";
import { SIGNS, at, breakable, fetched, figure, grouped, make, say, set, showProgress } from "./tools.js";

const address = `/api/studies/${document.body.dataset.study}`;
const page = 100; // rows that are shown at first
const armAddress = (name) => `/study/${document.body.dataset.study}/arm/${encodeURIComponent(name)}`;
const rows = new Rows(at("rows"), armAddress);
const cases = new Cases(address, armAddress);
const state = { head: null, table: null, arms: [], limit: page, drawn: 0, cost: 0, waiting: false };

// Fields that never change come once. Later heads have only the others.
function showHead(news) {
  const head = { ...state.head, ...news };
  state.head = head;
  set("question", head.question);
  if (at("answer").textContent !== head.answer) {
    set("answer", head.answer);
    say(head.answer);
  }
  set("spent", head.spent);
  set("origin", head.origin ?? "");
  at("revision").hidden = head.revision_text === null;
  set("revision", head.revision_text ?? "");
  set("intervals", head.intervals);
  for (const key of ["reached", "missed", "open"]) set(`n-${key}`, grouped(head[key]));
  for (const key of ["reached", "missed"]) set(`c-${key}`, head.confidence === null ? "by their means" : "certified");
  const [reach, miss, unseen] = head.leaning;
  const many = (...counts) => counts.filter(([count]) => count).map(([count, text]) => `${grouped(count)} ${text}`).join(", ");
  const [leaning, others] = [many([reach, SIGNS.reaches], [miss, SIGNS.misses]), many([unseen, "without a reward"], [head.retired, "retired"])];
  set("c-open", [leaning && `so far ${leaning}`, others].filter(Boolean).join("; "));
  for (const name of ["pulls", "rate", "left"]) set(`f-${name}`, head.facts[name]);
  at("f-cost").parentNode.hidden = head.facts.cost === null;
  set("f-cost", head.facts.cost ?? "");
  for (const name of ["pending", "told"]) set(`f-${name}`, grouped(head[name]));
  showProgress(at("budget-bar"), head);
  set("guarantee", head.guarantee);
  rows.headings(head);
  at("rows").parentNode.classList.toggle("of-cases", head.cases !== null);
  showTroubles(head.troubles);
}

function showTroubles(troubles) {
  const text = JSON.stringify(troubles);
  if (state.troubles === text) return;
  state.troubles = text;
  set("troubles-note", !troubles.length ? "None so far." : troubles.some((trouble) => trouble.retired) ? "Retired arms first." : "The arms with the most failures first.");
  at("troubles").replaceChildren(...troubles.map(({ arm, failures, retired, reason }) => make("tr", {},
    make("td", { class: "name" }, make("a", { href: armAddress(arm) }, ...breakable(arm)), retired ? " ✕\u00a0retired" : ""),
    figure("failures", grouped(failures)), make("td", { class: "wrap" }, reason))));
}

// Only add new lines at the top, because rebuilding the list would lose the reader's selection.
function showEvents(news) {
  const list = at("events");
  const newest = Number(list.firstElementChild?.dataset.seq ?? 0);
  const lines = news.filter((event) => event.seq > newest).reverse().map((event) => make("li", { "data-seq": event.seq },
    make("time", {}, event.time ? new Date(event.time * 1000).toLocaleTimeString("en-GB") : "–"), make("span", {}, ...(event.arm === undefined ? [] : [...breakable(event.arm), " · "]), event.text)));
  list.prepend(...lines);
  while (list.children.length > 30) list.lastChild.remove();
}

// Rows keep their places while the pointer or the keyboard focus is on one.
function showRows({ force = false } = {}) {
  const held = !force && at("rows").matches(":hover, :focus-within");
  if (!held) state.arms = chosen(state.table, state.head, { text: at("search").value, standing: at("filter").value, sort: at("sort").value });
  const shown = state.arms.slice(0, state.limit);
  rows.show(state.table, shown, state.head);
  set("shown", `${grouped(shown.length)} of ${grouped(state.arms.length)}`);
  at("more").hidden = state.arms.length <= state.limit;
  at("none").hidden = state.arms.length > 0;
}

function choose() {
  if (!state.table) return;
  state.limit = page;
  showRows({ force: true });
  say(`${grouped(state.arms.length)} arms`, { now: true });
}

const painted = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));

// Draw expensive charts less often, so that they do not keep the page busy.
function drawSoon() {
  if (state.waiting) return;
  state.waiting = true;
  const pause = state.drawn ? Math.max(0, state.drawn + Math.max(800, 4 * state.cost) - performance.now()) : 0;
  setTimeout(async () => {
    state.waiting = false;
    if (document.hidden) return;
    const before = performance.now();
    await charts.arms(at("chart-arms"), state.table, state.head);
    if (!state.drawn) { await painted(); performance.mark("chart"); }
    await charts.history(at("chart-history"), state.table.history.points);
    showRows();
    state.drawn = performance.now();
    state.cost = state.drawn - before;
  }, pause);
}

function change(news) {
  for (const [arm, ...values] of news.rows) state.table.columns.forEach((name, i) => { state.table[name][arm] = values[i]; });
  state.table.seq = news.seq;
  addPoints(state.table.history, news.history);
  showHead(news.head);
  showEvents(news.events);
  performance.mark("change");
  cases.change(state.table, state.head);
  drawSoon();
}

// The last point is the current answer. The other points stay; when there are too many, every second one is removed.
function addPoints(history, { step, points }) {
  history.points.pop();
  const last = history.points.at(-1)?.[0] ?? -1;
  history.points = [...history.points, ...points.slice(0, -1).filter((point) => point[0] > last)].filter((point, index) => !index || point[0] % step === 0);
  history.points.push(points.at(-1));
}

async function load() {
  const [head, table] = await Promise.all([fetched(address).then((head) => (showHead(head), head)), fetched(`${address}/arms`)]);
  state.head = head;
  state.table = table;
  at("events").replaceChildren();
  rows.clear(); // another revision has other arms
  showEvents(table.events);
  cases.change(table, head);
  showRows({ force: true });
  drawSoon();
}

for (const id of ["filter", "sort"]) at(id).addEventListener("change", choose);
at("search").addEventListener("input", choose);
at("more").addEventListener("click", () => { state.limit += 4 * page; showRows({ force: true }); });
document.addEventListener("visibilitychange", () => { if (!document.hidden && state.table) drawSoon(); });
charts.onScheme(() => state.table && drawSoon());
requestAnimationFrame(() => setTimeout(charts.ready)); // once the text is painted
follow(address, { load, seq: () => state.table.seq, change, head: showHead });
