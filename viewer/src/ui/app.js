// Wires the page together: files and keys in, the session's answers out to the cards.

import { byId, show } from "./dom.js";
import { bytes } from "./format.js";
import { connect } from "./link.js";
import { Records } from "./records.js";
import { drawCard } from "./shown-card.js";
import { drawAnchors, drawKeys } from "./side-cards.js";
import { drawVerdict } from "./verdict-card.js";

const send = connect((message) => answers[message.type]?.(message));
const records = new Records(send);
let isNew = false;

const answers = {
  reading({ name }) {
    isNew = true;
    say("");
    show(byId("progress"), true);
    byId("progress-name").textContent = name;
    document.body.dataset.view = document.body.dataset.view === "result" ? "result" : "reading";
  },
  progress({ done, total }) {
    byId("bar").value = total === 0 ? 1 : done / total;
    byId("progress-share").textContent = `${bytes(done)} of ${bytes(total)}`;
  },
  verdict(state) {
    show(byId("progress"), false);
    document.body.dataset.view = "result";
    drawVerdict(state, (position) => send({ type: "place", position }));
    drawAnchors(state.anchors, state.anchorsName);
    records.judge(state, isNew);
    document.title = `${state.verdict.headline} · ${state.name}`;
    isNew = false;
  },
  card(message) {
    say("");
    drawCard(message);
  },
  waiting({ name }) {
    say(`${name} holds anchors. Add the ledger they belong to.`, "note");
  },
  keys({ keys }) {
    drawKeys(keys, (keyId) => send({ type: "dropKey", keyId }));
    byId("key-text").value = "";
    const waits = document.body.dataset.view === "start" && keys.length > 0;
    const last = keys.at(-1);
    const what = last?.approvers ?? `Key ${last?.keyId}`;
    say(waits ? `${what} is trusted from now on. Add the evidence.` : "");
  },
  failed({ text, of, name }) {
    show(byId("progress"), false);
    if (document.body.dataset.view === "reading") document.body.dataset.view = "start";
    const what = name ?? (of === "addKey" ? "What you pasted" : "The file");
    say(`${what} ${text}.`, "bad");
  },
  rows: (message) => records.give(message),
  searching: (message) => records.searching(message),
  filtered(message) {
    records.filtered(message);
    records.afterFilter();
  },
  placed: (message) => records.placed(message),
};

function say(text, level = "note") {
  const line = byId("said");
  line.textContent = text;
  line.dataset.level = level;
  show(line, text !== "");
}

function openFiles(files) {
  for (const file of files) send({ type: "open", file });
}

for (const button of document.querySelectorAll("[data-pick]")) {
  button.addEventListener("click", () => byId("picker").click());
}
byId("picker").addEventListener("change", (event) => {
  openFiles(event.target.files);
  event.target.value = "";
});
byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  send({ type: "addKey", text: byId("key-text").value });
});

// Files may be dropped anywhere; the page shows that it will take them. Leaving is counted, as children fire it too.
let inside = 0;
addEventListener("dragenter", (event) => {
  event.preventDefault();
  inside++;
  document.body.dataset.drag = "over";
});
addEventListener("dragleave", () => {
  if (--inside <= 0) delete document.body.dataset.drag;
});
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  inside = 0;
  delete document.body.dataset.drag;
  openFiles(event.dataTransfer.files);
});
