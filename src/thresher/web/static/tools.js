// Small things that every page needs. Text goes into the page as text, never as markup.
export const LABELS = ["above", "below", "close", "undecided", "retired"];
export const SIGNS = { above: "▲", below: "▼", close: "≈", undecided: "·", retired: "✕" };
export const at = (id) => document.getElementById(id);
export const grouped = (n) => (n ?? 0).toLocaleString("en-US");
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

export async function fetched(address) {
  const reply = await fetch(address, { headers: { Accept: "application/json" } });
  const data = await reply.json();
  if (!reply.ok) throw new Error(`${data.error}: ${data.rule}; ${data.remedy}`);
  return data;
}

// Keeps a stream open and says in the header whether it is.
export function follow(address, after, handlers) {
  const pulse = at("pulse");
  const show = (state, text) => {
    if (pulse.dataset.state !== state) { pulse.dataset.state = state; pulse.textContent = text; }
  };
  const source = new EventSource(`${address}/stream?after=${after}`);
  source.onopen = () => show("live", "live");
  source.onerror = () => show("lost", "reconnecting");
  source.addEventListener("change", (event) => handlers.change(JSON.parse(event.data)));
  source.addEventListener("head", (event) => handlers.head?.(JSON.parse(event.data)));
  source.addEventListener("reset", () => { source.close(); handlers.reset(); });
  source.addEventListener("gone", () => { source.close(); show("lost", "the study was deleted"); });
  addEventListener("pagehide", () => source.close(), { once: true });
  return source;
}
