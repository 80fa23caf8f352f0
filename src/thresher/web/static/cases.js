// The tab of cases. It is fetched when it is opened, and again from time to time while it is open.
import { at, breakable, fetched, figure, grouped, make, set } from "./tools.js";

const first = 100; // cases that are shown at first
const most = 1000; // that the server sends
const longest = 300; // letters of the names of a case's arms, because a phone shows few
const pause = 5000; // milliseconds between two reads

export class Cases {
  constructor(address, armAddress) {
    Object.assign(this, { address, armAddress, limit: first, open: false, waiting: false, seq: 0, latest: 0, names: [], head: null });
    for (const name of ["arms", "cases"]) at(`tab-${name}`).addEventListener("click", () => this.choose(name));
    at("tabs").addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      const other = this.open ? "arms" : "cases";
      this.choose(other);
      at(`tab-${other}`).focus();
    });
    document.addEventListener("visibilitychange", () => this.readSoon());
    at("more-cases").addEventListener("click", () => { this.limit = most; this.read(); });
  }

  choose(name) {
    this.open = name === "cases";
    for (const tab of ["arms", "cases"]) {
      at(`tab-${tab}`).setAttribute("aria-selected", tab === name);
      at(`tab-${tab}`).tabIndex = tab === name ? 0 : -1;
      at(`panel-${tab}`).hidden = tab !== name;
    }
    if (this.open) this.read();
  }

  // Take a change of the study, or its first table.
  change({ names, seq }, head) {
    at("tabs").hidden = head.cases === null;
    at("arms-title").classList.toggle("hidden", head.cases !== null);
    Object.assign(this, { names, head, latest: seq });
    this.readSoon();
  }

  // The server's answer may be a little old: read again until it is the latest.
  readSoon() {
    if (!this.open || this.waiting || document.hidden || this.seq >= this.latest) return;
    this.waiting = true;
    setTimeout(() => { this.waiting = false; if (this.open) this.read(); }, pause);
  }

  async read() {
    const answer = await fetched(`${this.address}/cases?limit=${this.limit}`).catch((error) => { set("cases-note", error.message); });
    if (!answer) return;
    this.seq = answer.seq;
    const { rows, seen, cases } = answer;
    const title = rows.length < seen ? `The ${grouped(rows.length)} hardest of ${grouped(seen)} cases with a reward` : `${grouped(seen)} cases with a reward, the hardest first`;
    set("cases-note", `${title}${seen < cases ? `; ${grouped(cases - seen)} have none yet` : ""}. ${this.head.failing}`);
    at("cases").replaceChildren(...rows.map((row) => this.row(row)));
    at("more-cases").hidden = rows.length >= seen || this.limit >= most;
    this.readSoon();
  }

  row({ case: name, failed, passed, mean_text, rewards, texts, failed_by }) {
    const [cell, { baseline }] = [make("td", { class: "wrap" }), this.head];
    let letters = 0;
    const shown = rewards.slice(0, texts.length).filter(([arm], index) => (letters += this.names[arm].length) <= longest || !index);
    shown.forEach(([arm], index) => {
      cell.append(make("a", { class: `reward ${failed_by.includes(arm) ? "misses" : this.names[arm] === baseline ? "baseline" : "reaches"}`, href: this.armAddress(this.names[arm]) }, ...breakable(this.names[arm]), make("b", {}, ` ${texts[index]}`)), " ");
    });
    const rest = failed + passed - shown.length;
    if (rest) cell.append(make("span", { class: "quiet" }, `and ${grouped(rest)} more`));
    return make("tr", {}, make("td", { class: "name" }, ...breakable(String(name))), figure("failed", grouped(failed)),
      figure("passed", grouped(passed)), figure("mean", mean_text), cell);
  }
}
