// One arm: its rewards and its evidence. It is read again when the stream says that it changed.
import * as charts from "./charts.js";
import { SIGNS, at, fetched, follow, grouped, make, set, short } from "./tools.js";

const study = `/api/studies/${document.body.dataset.study}`;
const address = `${study}/arms/${document.body.dataset.arm}`;
let [data, index, busy, stale] = [null, -1, false, false];

function show() {
  const { row } = data;
  const sure = row.certified ? "certified" : row.progress === null ? "not certified" : `${Math.round(100 * row.progress)} % of the way to certainty`;
  set("answer", `${SIGNS[row.label]} ${row.label}, ${sure}.${row.reason ? ` Last failure: ${row.reason}` : ""}`);
  set("f-mean", short(row.mean));
  set("f-span", row.low === null ? "–" : `${short(row.low)} – ${short(row.high)}`);
  set("f-bar", short(data.threshold));
  for (const name of ["seen", "pending", "failures", "charged"]) set(`f-${name}`, grouped(row[name]));
  at("evidence-card").hidden = data.confidence === null;
  at("params-card").hidden = Object.keys(data.params).length === 0;
  set("params", JSON.stringify(data.params, null, 2));
  at("pulls").replaceChildren(...data.rewards.slice(-20).reverse().map((each) => make("tr", {},
    make("td", {}, grouped(each.pull)), make("td", {}, grouped(each.number)), make("td", {}, each.state), make("td", { class: "n" }, short(each.reward)))));
}

async function draw() {
  await charts.rewards(at("chart-rewards"), data);
  if (data.confidence !== null) await charts.evidence(at("chart-evidence"), data);
}

async function read() {
  if (busy) { stale = true; return; }
  busy = true;
  data = await fetched(address);
  show();
  await draw();
  setTimeout(() => { busy = false; if (stale) { stale = false; read(); } }, 1000);
}

async function begin() {
  await read();
  const table = await fetched(`${study}/arms`);
  index = table.names.indexOf(data.row.name);
  follow(study, table.seq, { change: (news) => { if (news.rows.some((row) => row[0] === index)) read(); }, reset: begin });
}

charts.onScheme(() => data && draw());
begin().catch((error) => set("answer", String(error.message)));
