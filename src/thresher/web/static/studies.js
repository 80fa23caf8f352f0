// The list of studies: names at once, then how far each is, one after the other.
import { answered, at, fetched, grouped, make, set } from "./tools.js";

const { studies } = await fetched("/api/studies");
set("lead", studies.length ? `${grouped(studies.length)} in this store.` : "There are none in this store yet. `thresher run` or `thresher create` makes one.");
const parts = studies.map((name) => {
  const [title, question, answer] = [make("h2", {}, name), make("p", { class: "note" }, "…"), make("p", { class: "note" }, "\u00a0")];
  const bar = make("progress", { max: 1, value: 0, "aria-label": "Share of the budget that is issued" });
  at("studies").append(make("li", {}, make("a", { class: "card", href: `/study/${encodeURIComponent(name)}` }, title, question, answer, bar)));
  return { name, question, answer, bar };
});
for (const part of parts) {
  try {
    const head = await fetched(`/api/studies/${encodeURIComponent(part.name)}`);
    const limit = head.budget === null ? "" : ` of ${grouped(head.budget)}`;
    const state = head.done ? (head.pending ? "the last pulls are under way" : "done") : head.pending ? `${grouped(head.pending)} under way` : "waiting for agents";
    part.question.textContent = `${head.question} ${answered(head)}`;
    part.answer.textContent = `${grouped(head.issued)}${limit} pulls · ${state}`;
    part.bar.value = head.budget ? head.issued / head.budget : head.settled / head.arms;
  } catch (error) {
    part.question.textContent = String(error.message);
  }
}
