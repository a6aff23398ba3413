// The card that somebody signed, drawn again from a file, and whether it is the signed one.

import { byId, el, icon, show } from "./dom.js";

export function drawCard({ name, sentence, sections, verdict, hash }) {
  const section = byId("shown-card");
  show(section, true);
  section.dataset.level = verdict.level;
  section.replaceChildren(
    el("p", { className: "quiet" }, name),
    el("h2", { id: "shown-title" }, sentence),
    el(
      "p",
      { className: "shown-verdict", role: "status" },
      icon({ good: "ok", bad: "bad", partial: "partial" }[verdict.level]),
      el("strong", {}, verdict.headline),
      ` ${verdict.text}`,
    ),
    ...sections.flatMap(({ title, rows }) => [
      el("h3", {}, title),
      el(
        "dl",
        { className: "facts" },
        ...rows.flatMap(([label, text]) => [el("dt", {}, label), el("dd", {}, text)]),
      ),
    ]),
    el(
      "p",
      { className: "quiet" },
      "Not signed: the history, times, and the age of proofs. This page cannot sign.",
    ),
    el("p", { className: "quiet" }, el("code", {}, hash)),
  );
}
