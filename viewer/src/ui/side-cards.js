// The two cards beside the verdict: the keys the reader trusts, and the anchors the ledger was held against.

import { byId, el, icon, show } from "./dom.js";
import { count, time } from "./format.js";

export function drawKeys(keys, onDrop) {
  show(byId("no-keys"), keys.length === 0);
  byId("keys").replaceChildren(
    ...keys.map(({ keyId, witness, approvers }) =>
      el(
        "li",
        {},
        icon("ok"),
        el("code", {}, approvers ?? (witness === null ? keyId : `witness ${witness}`)),
        el(
          "button",
          {
            type: "button",
            className: "plain",
            "aria-label": `Stop trusting ${approvers ?? `key ${keyId}`}`,
            onclick: () => onDrop(keyId),
          },
          icon("close"),
        ),
      ),
    ),
  );
}

export function drawAnchors(anchors, name) {
  show(byId("anchors-card"), anchors !== null);
  if (anchors === null) return;
  const bad = anchors.filter((anchor) => anchor.problem !== null).length;
  byId("anchors-name").textContent =
    `${name}: ${bad === 0 ? `${count(anchors.length, "anchor")}, all hold` : `${bad} of ${count(anchors.length, "anchor")} ${bad === 1 ? "does" : "do"} not hold`}`;
  // Bad ones first, and no more than a reader can take in; the verdict counts them all.
  const order = [...anchors].sort((a, b) => (b.problem !== null) - (a.problem !== null) || b.line - a.line);
  byId("anchors").replaceChildren(...order.slice(0, 200).map(anchorItem));
}

function anchorItem({ line, ts_ms, records, problem, signature }) {
  const state = problem === null ? "ok" : "bad";
  const head = ts_ms === null ? `Line ${line}` : time(ts_ms);
  const what = records === null ? null : count(records, "record");
  const said =
    problem ??
    {
      trusted: "signed, trusted",
      "self-consistent": "signed",
      unchecked: "signature not checked",
      none: "not signed",
    }[signature];
  return el(
    "li",
    { "data-state": state },
    icon(state),
    el("div", {}, el("strong", {}, head), el("p", {}, [what, said].filter(Boolean).join(" · "))),
  );
}
