// Keeps a page up to date: loads the study, follows its changes, and reconnects when the connection is lost.
import { EXPIRED, at, fetched } from "./tools.js";

const SILENT = 45; // seconds without a message after which the stream is lost; the server sends one at least every 15
const HIDDEN = 10; // seconds in the background after which a page closes its stream, because browsers allow few streams

const clock = (when) => when.toLocaleTimeString("en-GB");

function show(state, text) {
  const pulse = at("pulse");
  if (pulse.dataset.state !== state || pulse.textContent !== text) { pulse.dataset.state = state; pulse.textContent = text; }
}

function notice(text, ...links) {
  const node = at("notice");
  node.hidden = !text;
  if (!text || node.dataset.text === text) return;
  node.dataset.text = text;
  node.replaceChildren(text, ...links.flatMap(([label, href]) => [" ", Object.assign(document.createElement("a"), { textContent: label, href })]));
}

// `load` fetches all data, and `seq` returns the last event that the page knows. The other handlers are named after messages.
export function follow(address, { load, seq, ...handlers }) {
  let [source, loaded, failures, timer, lostSince, heardAt, over] = [null, false, 0, 0, null, 0, false];

  function close() {
    source?.close();
    source = null;
    clearTimeout(timer);
  }

  function connected() {
    [failures, lostSince, heardAt] = [0, null, performance.now()];
    show("live", "live");
    notice("");
  }

  function open() {
    close();
    heardAt = performance.now();
    source = new EventSource(`${address}/stream?after=${seq()}`);
    source.onopen = connected;
    source.onerror = () => failed({ status: 0, refused: source.readyState === EventSource.CLOSED }); // otherwise it was lost
    const on = (kind, act) => source.addEventListener(kind, (event) => { heardAt = performance.now(); act(JSON.parse(event.data)); });
    on("beat", () => {});
    on("change", handlers.change);
    on("head", (head) => handlers.head?.(head));
    on("reset", () => { loaded = false; start(); });
    on("gone", () => ended());
  }

  function ended() {
    close();
    over = true;
    show("lost", "deleted");
    notice("This study was deleted. The page shows its last known state.", ["All studies", "/"]);
  }

  // Try again, with growing pauses.
  function failed(error) {
    close();
    if (over) return;
    lostSince ??= new Date();
    failures += 1;
    if (error.status === 404 && loaded) return ended();
    show("lost", error.status === 401 ? "signed out" : `lost since ${clock(lostSince)}`);
    if (error.status === 401) notice(`${EXPIRED}; then this page continues.`);
    else if (error.status) notice(error.message, ["All studies", "/"]);
    else if (failures > 1 && error.refused) notice("The server has no room for another live page at present. This page keeps trying.");
    else if (failures > 1) notice(`No connection to the server since ${clock(lostSince)}. This page keeps trying.`);
    const wait = error.status === 401 ? 2000 : Math.min(20000, 250 * 2 ** failures);
    timer = setTimeout(start, wait * (0.75 + Math.random() / 2));
  }

  async function start() {
    close();
    try {
      if (loaded) {
        const head = await fetched(address); // an error of this request says what is wrong; an error of a stream does not
        handlers.head?.(head);
      } else await load();
      loaded = true;
      if (!document.hidden) open();
    } catch (error) {
      if (!("status" in error)) throw error;
      failed(error);
    }
  }

  setInterval(() => { if (source && performance.now() - heardAt > 1000 * SILENT) failed({ status: 0 }); }, 5000);
  let hiding = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (over) return;
    if (document.hidden) hiding = setTimeout(close, 1000 * HIDDEN);
    else if (!source) start();
  });
  for (const kind of ["online", "focus"]) addEventListener(kind, () => { if (lostSince && !over) start(); });
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => { if (event.persisted && !over) start(); });
  return start();
}
