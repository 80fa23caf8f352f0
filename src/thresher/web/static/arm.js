// The page of one arm: its rewards and its evidence. It is fetched again when the stream says that the arm changed.
import * as charts from "./charts.js";
import { follow } from "./stream.js";
import { at, breakable, fetched, figure, grouped, make, say, seen, set } from "./tools.js";

const study = `/api/studies/${document.body.dataset.study}`;
const address = `${study}/arms/${document.body.dataset.arm}`;
const counts = [...at("facts").children];
let [data, index, seq, reading, stale] = [null, -1, 0, false, false];

function show() {
  const [{ row }, hasPairs] = [data, data.baseline !== null && data.row.standing !== "baseline"];
  if (at("answer").textContent !== data.answer) say(data.answer);
  set("answer", data.answer);
  at("facts").replaceChildren(...data.facts.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", { "data-fact": name }, text))), ...counts);
  set("l-seen", data.cases === null ? "rewards" : "cases");
  set("f-seen", `${seen(row.seen, data.cases)}${row.exact ? ", exact" : ""}`);
  for (const name of ["pending", "failures", "charged"]) set(`f-${name}`, grouped(row[name]));
  at("h-case").hidden = at("counting").hidden = data.cases === null;
  at("last-pulls").classList.toggle("cards", data.cases !== null || hasPairs);
  at("h-base").hidden = !hasPairs;
  at("evidence-card").hidden = data.confidence === null || row.standing === "baseline";
  at("params-card").hidden = Object.keys(data.params).length === 0;
  at("params").replaceChildren(...breakable(JSON.stringify(data.params, null, 2)));
  at("pulls").replaceChildren(...data.rewards.slice(-20).reverse().map((pull) => make("tr", {},
    make("td", { "data-head": "pull" }, grouped(pull.pull)), make("td", { "data-head": "number" }, grouped(pull.number)), make("td", { class: "standing" }, pull.state),
    ...(pull.case === undefined ? [] : [make("td", { class: "name" }, ...breakable(String(pull.case)))]), figure("reward", pull.text, "key"), ...(hasPairs ? [figure("baseline", pull.baseline_text)] : []))));
}

async function draw() {
  await charts.rewards(at("chart-rewards"), data);
  if (!at("evidence-card").hidden) await charts.evidence(at("chart-evidence"), data);
}

async function read() {
  if (reading) { stale = true; return; }
  reading = true;
  try {
    data = await fetched(address);
    show();
    await draw();
  } finally {
    setTimeout(() => { reading = false; if (stale) { stale = false; read().catch(() => {}); } }, 1000);
  }
}

async function load() {
  await read();
  ({ seq, index } = data);
}

function change(news) {
  seq = news.seq;
  if (news.rows.some((row) => row[0] === index)) read().catch(() => {}); // an error shows in the stream, too
}

charts.onScheme(() => data && draw());
follow(study, { load, seq: () => seq, change });
