// A persistent evaluator in Node.js, without any package. It answers several pulls at once, in the order in which they end.
//
//   thresher run --stay --per-process 8 --at-least 0.5 -- node examples/stay.mjs
//
// Each line on standard input is a pull, each line on standard output an answer. Logs go to standard error.
import { createInterface } from "node:readline";

const answer = (data) => process.stdout.write(JSON.stringify(data) + "\n");

// Waits as for a service, and passes with the probability that is the arm's parameter. The seed decides.
async function evaluate({ seed, params }) {
  await new Promise((resolve) => setTimeout(resolve, seed % 5));
  if (seed % 97 === 0) throw new Error("the service hung up");
  return ((seed * 2654435761) % 2 ** 32) / 2 ** 32 < params.rate ? 1 : 0;
}

answer({ protocol: 1, arms: [{ name: "small", rate: 0.2 }, { name: "large", rate: 0.9 }] });

for await (const line of createInterface({ input: process.stdin })) {
  const pull = JSON.parse(line);
  evaluate(pull).then(
    (reward) => answer({ pull: pull.pull, reward }),
    (error) => answer({ pull: pull.pull, error: String(error) }),
  );
}
