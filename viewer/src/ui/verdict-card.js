// The verdict: what a reader sees first, and what it rests on.

import { byId, el, icon, show } from "./dom.js";
import { bytes, count, number, shortHash, time } from "./format.js";

const KINDS = {
  file: "Ledger",
  ledger: "Signed bundle of a whole ledger",
  run: "Signed bundle of one run",
  bundle: "Signed bundle",
};

export function drawVerdict(state, onShow) {
  const { verdict } = state;
  const card = byId("verdict");
  card.dataset.level = verdict.level;
  byId("verdict-icon").replaceChildren(icon({ good: "ok", bad: "bad", partial: "partial" }[verdict.level]));
  byId("headline").textContent = verdict.headline;
  byId("meaning").textContent = verdict.meaning;
  byId("facts").replaceChildren(...facts(state));
  drawStrip(state);
  const problem = byId("problem");
  show(problem, verdict.problem !== null);
  problem.replaceChildren();
  if (verdict.problem !== null) {
    problem.append(el("p", {}, verdict.problem.text));
    const { position } = verdict.problem;
    if (position !== null && position < state.total) {
      problem.append(el("button", { type: "button", onclick: () => onShow(position) }, "Show it"));
    }
  }
  byId("checks").replaceChildren(
    ...verdict.checks.map(({ state: outcome, text }) => checkItem(outcome, text)),
  );
}

/** What was not checked says so in words; what held is plain from its mark, and said to those who do not see it. */
function checkItem(outcome, text) {
  const said =
    outcome === "off"
      ? el("strong", {}, "Not checked: ")
      : el("span", { className: "quiet-label" }, "Holds: ");
  return el("li", { "data-state": outcome }, icon(outcome), el("span", {}, said, text));
}

function facts(state) {
  const rows = [
    ["File", `${state.name} (${bytes(state.size)})`],
    ["What", KINDS[state.kind] ?? KINDS.bundle],
    ["Run", state.runId],
    ["Records", number(state.total)],
    ["Exported", state.exportedMs === null ? null : time(state.exportedMs)],
    [state.verdict.problem === null ? "Head" : "Last good hash", state.head],
  ];
  return rows
    .filter(([, value]) => value !== null && value !== undefined)
    .flatMap(([name, value]) => [
      el("dt", {}, name),
      value === state.head ? el("dd", {}, hash(value)) : el("dd", {}, value),
    ]);
}

/** A hash in short, whole in its title, and copied whole by a click. */
function hash(value) {
  const copy = async (event) => {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(value);
      button.dataset.done = "copied";
      setTimeout(() => delete button.dataset.done, 1200);
    } catch {
      getSelection()?.selectAllChildren(button);
    }
  };
  return el(
    "button",
    { type: "button", className: "hash", title: value, "aria-label": `Copy ${value}`, onclick: copy },
    shortHash(value),
  );
}

/** The whole file as one bar: what holds, where it breaks, what was not judged. */
function drawStrip({ verdict, total, sound }) {
  const strip = byId("strip");
  const broken = verdict.problem !== null && verdict.problem.position !== null && total > 0;
  show(strip, broken);
  if (!broken) return;
  const part = (amount) => `${(100 * amount) / total}%`;
  const at = verdict.problem.position;
  const pieces = [
    ["sound", Math.min(at, sound)],
    ["break", 1],
    ["after", Math.max(0, total - at - 1)],
  ];
  strip.replaceChildren(
    ...pieces.map(([name, amount]) => {
      const piece = el("span", { className: name });
      piece.style.flexBasis = part(amount);
      return piece;
    }),
  );
  strip.setAttribute("aria-label", `${count(sound, "record")} hold, then it breaks`);
}
