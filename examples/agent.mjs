// An agent in Node.js, without dependencies: several pulls at once, each in its own flow.
//
//   THRESHER_URL=http://127.0.0.1:8765 THRESHER_TOKEN=… node examples/agent.mjs STUDY [WORKERS]
//
// THRESHER_TOKEN is the token that writes. Replace `evaluate` by your own; it returns a number, or throws.
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";

const { THRESHER_URL, THRESHER_TOKEN } = process.env;
const [study, workers = "4"] = process.argv.slice(2);
const api = `${THRESHER_URL}/api/studies/${encodeURIComponent(study)}`;

async function evaluate(pull) {
  const chance = Number(pull.params.chance ?? 0.5); // a coin that the parameters describe
  return ((pull.seed * 2654435761) % 2 ** 32) / 2 ** 32 < chance ? 1 : 0;
}

// A lost answer is asked for again: the key tells the server that it is the same question.
async function call(path, body, key = randomUUID(), attempts = 5) {
  try {
    const reply = await fetch(`${api}/${path}`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${THRESHER_TOKEN}`,
        "Content-Type": "application/json",
        "Idempotency-Key": key,
        "Thresher-Agent": `${hostname()}-${process.pid}`,
      },
      body: JSON.stringify(body),
    });
    const data = await reply.json();
    if (reply.ok) return data;
    const problem = new Error(`${data.error} ${JSON.stringify(data.value)}: ${data.rule}; ${data.remedy}`);
    problem.final = reply.status < 500;
    throw problem;
  } catch (error) {
    if (error.final || attempts === 1) throw error;
    await new Promise((resolve) => setTimeout(resolve, 500));
    return call(path, body, key, attempts - 1);
  }
}

async function work() {
  for (;;) {
    const { pulls, wait } = await call("ask", { n: 1 });
    if (!pulls.length) {
      if (!wait) return;
      await new Promise((resolve) => setTimeout(resolve, 1000)); // other agents have the last cases: some may be free again
      continue;
    }
    const [pull] = pulls;
    try {
      const reward = await evaluate(pull);
      await call("tell", { pull: pull.pull, reward });
    } catch (error) {
      if (error.final) throw error; // the server refused: trying again would not help
      await call("drop", { pulls: [pull.pull], cause: "failed", reason: String(error.message) });
    }
  }
}

await Promise.all(Array.from({ length: Number(workers) }, work));
