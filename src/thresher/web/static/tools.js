// Small things that every page needs. Text goes into the page as text, never as markup.
export const LABELS = ["above", "below", "close", "undecided", "retired"];
export const SIGNS = { above: "▲", below: "▼", close: "≈", undecided: "·", retired: "✕" };
export const at = (id) => document.getElementById(id);
const numbers = new Intl.NumberFormat("en-US");
export const grouped = (n) => numbers.format(n ?? 0);
export const short = (x) => (x === null || x === undefined ? "–" : String(Number(x.toPrecision(4))));

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

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  const [hours, days] = [Math.floor(minutes / 60), Math.floor(minutes / 1440)];
  if (days) return `${days} d ${hours % 24} h`;
  if (hours) return `${hours} h ${minutes % 60} min`;
  return minutes ? `${minutes} min ${Math.round(seconds) % 60} s` : `${Math.round(seconds)} s`;
}

export function speed(rate) {
  if (!rate) return "–";
  for (const [unit, seconds] of [["s", 1], ["min", 60], ["h", 3600]]) {
    const count = rate * seconds;
    if (count >= 1 || unit === "h") return `${count >= 10 ? grouped(Math.round(count)) : short(count)} / ${unit}`;
  }
}

// The sentence that the server writes when it first sends the page.
export function answered(head) {
  const counts = LABELS.filter((label) => head.labels[label] || label === "above" || label === "below")
    .map((label) => `${grouped(head.labels[label])} ${label}`);
  const sure = Object.values(head.certified).reduce((a, b) => a + b, 0);
  const tail = head.confidence === null ? "" : `; ${grouped(sure)} certified, ${grouped(head.open)} still open`;
  return `${counts.join(", ")}${tail}.`;
}

// What the server refused, or that it could not be reached: then the status is 0.
export class Refused extends Error {
  constructor(status, text) { super(text); this.status = status; }
}

export async function fetched(address) {
  const reply = await fetch(address, { headers: { Accept: "application/json" } }).catch(() => { throw new Refused(0, "The server cannot be reached."); });
  const data = await reply.json().catch(() => { throw new Refused(reply.ok ? 0 : reply.status, "The answer broke off."); });
  if (!reply.ok) throw new Refused(reply.status, `${data.error}${typeof data.value === "string" ? ` “${data.value}”` : ""}: ${data.rule}. ${data.remedy[0].toUpperCase()}${data.remedy.slice(1)}.`);
  return data;
}

// For those who listen instead of look: not more than one sentence in half a minute, unless they asked.
let [spoken, speaking] = [-Infinity, 0];
export function say(text, { now = false } = {}) {
  clearTimeout(speaking);
  const wait = now ? 600 : Math.max(600, spoken + 30000 - performance.now());
  speaking = setTimeout(() => { spoken = performance.now(); set("spoken", text); }, wait);
}
