// Functions that every page needs. Text goes into the page as text, never as markup. Sentences and numbers come from the server.
export const SIGNS = { reaches: "✓", misses: "✗", open: "·", retired: "✕", baseline: "=" };
export const at = (id) => document.getElementById(id);
const numbers = new Intl.NumberFormat("en-US");
export const grouped = (n) => numbers.format(n ?? 0);
export const EXPIRED = "Your session has expired: it lasts 12 hours, and ends when the server restarts. Open the address that the server printed";
export const seen = (n, cases) => (cases === null ? grouped(n) : `${grouped(n)} of ${grouped(cases)}`);

// How far a study is: its pulls so far, of those and the ones that are left; where there is no telling, the share of its
// arms that have an answer.
export function showProgress(bar, { done, issued, left, reached, missed, open, facts }) {
  bar.value = done ? 1 : left !== null ? issued / (issued + left || 1) : (reached + missed) / (reached + missed + open || 1);
  bar.setAttribute("aria-label", done ? "Done" : left !== null ? `Left: ${facts.left}` : "Share of the arms that have an answer");
}

// Where an arm stands. The server sends its index among all standings.
export const standingOf = (table, arm) => table.standings[table.standing[arm]];

export function set(id, text) {
  const node = at(id);
  if (node.textContent !== text) node.textContent = text;
}

export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// The pieces of a name, which a line may be broken between; text/naming.py has the same rule.
export const pieces = (name) => name.match(/.{3,}?[-/_[,=:\\]+(?=.{2})|.+/gsu) ?? [];
export const breakable = (name) => pieces(name).flatMap((piece, index) => (index ? [make("wbr"), piece] : [piece]));

// A cell with a number. On a narrow screen, a row is a card, and its heading stands before the number.
export const figure = (head, text, kind = "") => make("td", { class: `n ${kind}`.trim(), "data-head": head }, ...[text].flat());

// The server refused, or could not be reached: then the status is 0.
export class Refused extends Error {
  constructor(status, text) { super(text); this.status = status; }
}

export async function fetched(address) {
  const reply = await fetch(address, { headers: { Accept: "application/json" } }).catch(() => { throw new Refused(0, "The server cannot be reached."); });
  const data = await reply.json().catch(() => { throw new Refused(reply.ok ? 0 : reply.status, "The answer broke off."); });
  if (!reply.ok) throw new Refused(reply.status, `${data.error}${typeof data.value === "string" ? ` “${data.value}”` : ""}: ${data.rule}. ${data.remedy[0].toUpperCase()}${data.remedy.slice(1)}.`);
  return data;
}

// Speak through a screen reader: at most one sentence in half a minute, unless the user asked for it.
let [spokenAt, timer] = [-Infinity, 0];
export function say(text, { now = false } = {}) {
  clearTimeout(timer);
  const wait = now ? 600 : Math.max(600, spokenAt + 30000 - performance.now());
  timer = setTimeout(() => { spokenAt = performance.now(); set("spoken", text); }, wait);
}
