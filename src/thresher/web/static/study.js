// The page of one study: text first, then the picture; afterwards only what changed arrives.
import * as charts from "./charts.js";
import { armRow, chosen } from "./rows.js";
import { answered, at, duration, fetched, follow, grouped, make, set, speed } from "./tools.js";

const address = `/api/studies/${document.body.dataset.study}`;
const page = 100; // rows at once
const state = { head: null, table: null, limit: page, drawn: 0, cost: 0, waiting: false, events: [] };

function showHead(head) {
  state.head = head;
  set("question", head.question);
  set("answer", answered(head));
  for (const label of ["above", "below", "close", "retired"]) {
    set(`n-${label}`, grouped(head.labels[label]));
    set(`c-${label}`, head.confidence === null || label === "retired" ? "" : `${grouped(head.certified[label])} certified`);
  }
  set("n-open", grouped(head.open));
  set("c-open", head.labels.undecided ? `${grouped(head.labels.undecided)} without a reward` : "");
  set("f-issued", grouped(head.issued));
  set("f-budget", head.budget === null ? "until settled" : grouped(head.budget));
  set("f-pending", grouped(head.pending));
  set("f-told", grouped(head.told));
  set("f-rate", speed(head.rate));
  set("f-left", head.done && !head.pending ? "done" : duration(head.seconds_left));
  at("budget-bar").value = head.budget ? head.issued / head.budget : head.settled / head.arms;
  set("guarantee", head.guarantee);
  showTroubles(head.troubles);
}

function showTroubles(troubles) {
  const text = JSON.stringify(troubles);
  if (state.troubles === text) return;
  state.troubles = text;
  set("troubles-note", troubles.length ? "Retired arms first, then those that failed most often." : "None so far.");
  at("troubles").replaceChildren(...troubles.map((each) => make("tr", {},
    make("td", { class: "wrap" }, make("a", { href: armAddress(each.arm) }, each.arm), each.retired ? " ✕ retired" : ""),
    make("td", { class: "n" }, grouped(each.failures)), make("td", { class: "wrap" }, each.reason))));
}

const armAddress = (name) => `/study/${document.body.dataset.study}/arm/${encodeURIComponent(name)}`;

function told(event) {
  const what = { asked: "asked", told: event.late ? "late reward" : "reward", dropped: event.cause, retired: "retired", restored: "restored", extended: "extended" }[event.kind];
  const value = event.kind === "told" ? ` ${Number(event.reward.toPrecision(4))}` : event.kind === "extended" ? ` to ${grouped(event.budget)}` : "";
  return `${event.arm ?? ""} · ${what}${value}${event.reason ? ` · ${event.reason}` : ""}`;
}

function showEvents(news) {
  const newest = state.events.length ? state.events[0].seq : 0;
  state.events = [...news.filter((event) => event.seq > newest).reverse(), ...state.events].slice(0, 30);
  at("events").replaceChildren(...state.events.map((event) => make("li", {},
    make("time", {}, event.time ? new Date(event.time * 1000).toLocaleTimeString("en-GB") : "–"), make("span", {}, told(event)))));
}

function showRows() {
  const arms = chosen(state.table, { text: at("search").value, label: at("filter").value, sort: at("sort").value });
  const shown = arms.slice(0, state.limit);
  const focused = document.activeElement?.closest("#rows")?.querySelector(":focus")?.getAttribute("href");
  at("rows").replaceChildren(...shown.map((arm) => armRow(state.table, arm, state.head, armAddress(state.table.names[arm]))));
  if (focused) [...at("rows").querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus({ preventScroll: true });
  set("shown", `${grouped(shown.length)} of ${grouped(arms.length)}`);
  at("more").hidden = arms.length <= state.limit;
}

// A picture is drawn as often as it is cheap to: a large one must not keep the page busy.
function drawSoon() {
  if (state.waiting) return;
  state.waiting = true;
  const pause = state.drawn ? Math.max(0, state.drawn + Math.max(800, 4 * state.cost) - performance.now()) : 0;
  setTimeout(async () => {
    state.waiting = false;
    if (document.hidden) return;
    const before = performance.now();
    await charts.arms(at("chart-arms"), state.table, state.head.threshold);
    if (!performance.getEntriesByName("chart").length) performance.mark("chart");
    await charts.history(at("chart-history"), state.table.history);
    showRows();
    state.drawn = performance.now();
    state.cost = state.drawn - before;
  }, pause);
}

const columns = ["label", "certified", "mean", "low", "high", "seen", "pending", "failures", "progress"];

function change(news) {
  for (const [arm, ...values] of news.rows) columns.forEach((name, i) => { state.table[name][arm] = values[i]; });
  const history = state.table.history;
  if (history.length && history.at(-1)[0] === news.point[0]) history.pop();
  history.push(news.point);
  if (history.length > 1000) state.table.history = history.filter((_, i) => i % 2 === 0 || i === history.length - 1);
  showHead(news.head);
  showEvents(news.events);
  drawSoon();
}

async function begin() {
  requestAnimationFrame(() => setTimeout(charts.ready)); // once the text is painted
  const [head, table] = await Promise.all([fetched(address).then((found) => (showHead(found), found)), fetched(`${address}/arms`)]);
  state.head = head;
  state.table = table;
  showEvents(state.table.events);
  showRows();
  drawSoon();
  follow(address, state.table.seq, { change, head: showHead, reset: begin });
}

for (const id of ["filter", "sort"]) at(id).addEventListener("change", () => { state.limit = page; showRows(); });
at("search").addEventListener("input", () => { state.limit = page; showRows(); });
at("more").addEventListener("click", () => { state.limit += 4 * page; showRows(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden && state.table) drawSoon(); });
charts.onScheme(() => state.table && drawSoon());
begin().catch((error) => set("answer", String(error.message)));
