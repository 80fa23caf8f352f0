// The list of studies: first their names, then the state of one after the other. It is refreshed every few seconds.
import { EXPIRED, at, breakable, fetched, grouped, make, set, showProgress } from "./tools.js";

const PAUSE = 5000; // milliseconds between two refreshes
const SELDOM = 12; // refreshes after which a study that is over is read again: a revision may have begun
const cards = new Map();
let round = 0;

function card(name) {
  const [title, question, answer] = [make("h2", {}, ...breakable(name)), make("p", { class: "note" }, "…"), make("p", { class: "note" }, "\u00a0")];
  const bar = make("progress", { max: 1, value: 0, "aria-label": "Progress" });
  const item = make("li", {}, make("a", { class: "card", href: `/study/${encodeURIComponent(name)}` }, title, question, answer, bar));
  return { item, question, answer, bar, isOver: false };
}

async function fill(name, part) {
  try {
    const head = await fetched(`/api/studies/${encodeURIComponent(name)}`);
    part.question.textContent = head.question;
    part.answer.textContent = `${head.answer} ${head.done ? (head.pending ? "The last pulls are pending." : "Done.") : head.pending ? "" : "No agent is working."}`;
    showProgress(part.bar, head);
    part.isOver = head.done && !head.pending;
  } catch (error) {
    if (!error.status) throw error;
    part.question.textContent = error.message;
    part.isOver = true;
  }
}

async function refresh() {
  const { studies } = await fetched("/api/studies");
  if (studies.length) set("lead", `${grouped(studies.length)} in this store.`);
  else if (!at("lead").querySelector("code")) at("lead").replaceChildren("This store has no studies yet. Create one with ", make("code", {}, "thresher run"), " or ", make("code", {}, "thresher create"), ".");
  for (const name of cards.keys()) if (!studies.includes(name)) { cards.get(name).item.remove(); cards.delete(name); }
  for (const name of studies) if (!cards.has(name)) cards.set(name, card(name));
  studies.forEach((name, index) => {
    const { item } = cards.get(name);
    if (at("studies").children[index] !== item) at("studies").insertBefore(item, at("studies").children[index] ?? null);
  });
  for (const [name, part] of cards) if (!part.isOver || round % SELDOM === 0) await fill(name, part);
  round += 1;
}

async function keepFresh() {
  try {
    if (!document.hidden) await refresh();
  } catch (error) {
    if (!("status" in error)) throw error;
    set("lead", error.status === 401 ? `${EXPIRED}.` : `${error.message} This page keeps trying.`);
  }
  setTimeout(keepFresh, PAUSE);
}

keepFresh();
