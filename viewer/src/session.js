// One viewing session: what has been opened, who is trusted, and the answers to what the page asks. It runs in a
// worker, or in the page where a worker cannot be had, and knows nothing of either: it is given `post`.

import { Archive, compileQuery } from "./core/archive.js";
import { readBundle } from "./core/bundle.js";
import { cardSections, judgeCard, looksLikeCard, parseCard } from "./core/card.js";
import { Finding } from "./core/finding.js";
import { parsePublicKey } from "./core/keys.js";
import { readLedger } from "./core/ledger.js";
import { parseApproversFile } from "./core/signatures.js";
import { judgeBundle, judgeLedger } from "./core/verdict.js";
import { looksLikeWitness, parseWitness } from "./core/witness.js";
import { anchorFindings, bundleSignature } from "./verify.js";

const SNIFF_BYTES = 64 * 1024;
/** Stands for the approvers file in the list of what the reader trusts. */
const APPROVERS = "approvers";

/** What a file claims to be, by its first bytes. Verification does not rest on the guess. */
export async function sniff(blob) {
  const start = new TextDecoder().decode(await blob.slice(0, SNIFF_BYTES).arrayBuffer());
  if (/^\s*-----BEGIN [A-Z0-9 ]*KEY-----/.test(start) || looksLikeWitness(start)) return "key";
  if (/^\s*\{(?:(?!"seq"|"records")[\s\S])*?"approvers"\s*:\s*\[/.test(start)) return "approvers";
  if (looksLikeCard(start)) return "card";
  const line = start.split("\n", 1)[0];
  try {
    const format = JSON.parse(line)?.format;
    if (format === "svc-anchor") return "anchors";
    return format === "svc-bundle" ? "bundle" : "ledger";
  } catch {
    // The first line is not one whole JSON value: a bundle spread over lines, one longer than the sample, or damage.
    return /"format"\s*:\s*"svc-bundle"/.test(start) ||
      /"records"\s*:\s*\[/.test(start) ||
      line.trim() === "{"
      ? "bundle"
      : "ledger";
  }
}

export function createSession(post) {
  const state = {
    evidence: null,
    name: "",
    anchors: null,
    anchorsName: "",
    trusted: [],
    witnesses: [],
    approvers: null,
    card: null,
    matches: null,
    query: 0,
  };
  const archive = () => new Archive(state.evidence.blob, state.evidence.extents);

  async function open({ file }) {
    const kind = await sniff(file);
    if (kind === "key") return addKey({ text: await file.text(), name: file.name });
    if (kind === "card") {
      state.card = { name: file.name, ...parseCard(await file.text()) };
      return state.evidence === null ? postCard([]) : judge();
    }
    if (kind === "approvers") return addApprovers(file);
    if (kind === "anchors") {
      state.anchors = file;
      state.anchorsName = file.name;
      return state.evidence === null ? post({ type: "waiting", name: file.name }) : judge();
    }
    post({ type: "reading", name: file.name });
    const onProgress = (done, total) => post({ type: "progress", done, total });
    state.evidence =
      kind === "bundle" ? await readBundle(file, onProgress) : await readLedger(file, onProgress);
    state.name = file.name;
    state.matches = null;
    return judge();
  }

  /** The card with its verdict, held against the payloads of signatures that hold. */
  function postCard(payloads) {
    const { card } = state;
    if (card === null) return;
    const { name, content, computed } = card;
    const verdict = judgeCard(card, payloads);
    const { sentence } = content.card;
    post({ type: "card", name, sentence, sections: cardSections(card), verdict, hash: computed });
  }

  async function addApprovers(file) {
    state.approvers = { name: file.name, ...parseApproversFile(await file.text()) };
    postKeys(file.name);
    if (state.evidence !== null) await judge();
  }

  async function addKey({ text, name }) {
    const isWitness = looksLikeWitness(text);
    const list = isWitness ? state.witnesses : state.trusted;
    const key = isWitness ? parseWitness(text) : parsePublicKey(text.trim());
    if (!list.some((known) => known.keyId === key.keyId)) list.push(key);
    postKeys(name);
    if (state.evidence !== null) await judge();
  }

  function postKeys(name) {
    const keys = [
      ...state.trusted.map(({ keyId }) => ({ keyId, witness: null })),
      ...state.witnesses.map(({ keyId, name: witness }) => ({ keyId, witness })),
    ];
    if (state.approvers !== null)
      keys.push({ keyId: APPROVERS, witness: null, approvers: state.approvers.name });
    post({ type: "keys", keys, name });
  }

  async function dropKey({ keyId }) {
    state.trusted = state.trusted.filter((key) => key.keyId !== keyId);
    state.witnesses = state.witnesses.filter((key) => key.keyId !== keyId);
    if (keyId === APPROVERS) state.approvers = null;
    postKeys();
    if (state.evidence !== null) await judge();
  }

  async function judge() {
    const { evidence } = state;
    const anchors = await judgeAnchors();
    const isBundle = evidence.kind === "bundle";
    const signature = isBundle ? await bundleSignature(evidence, state.trusted, state) : null;
    const verdict = isBundle
      ? judgeBundle(evidence, signature, anchors.findings)
      : judgeLedger(evidence, anchors.findings);
    const holds = (signature?.approvals.signers.length ?? 0) > 0;
    postCard(holds ? evidence.members.signatures.map(({ payload }) => payload) : []);
    if (anchors.note !== null) verdict.checks.push({ state: "off", text: anchors.note });
    post({
      type: "verdict",
      verdict,
      name: state.name,
      kind: isBundle ? (evidence.members?.kind ?? "bundle") : "file",
      runId: evidence.members?.run_id ?? null,
      exportedMs: evidence.members?.exported_ms ?? null,
      size: evidence.blob.size,
      total: evidence.extents.count,
      sound: evidence.count,
      head: evidence.head,
      events: [...evidence.events].sort((a, b) => b[1] - a[1]),
      anchors: anchors.findings,
      anchorsName: state.anchorsName,
    });
  }

  /** Anchors speak of a whole ledger that verifies; for anything else they wait, and the verdict says so. */
  async function judgeAnchors() {
    if (state.anchors === null) return { findings: null, note: null };
    const { evidence } = state;
    if (evidence.problem !== null)
      return { findings: null, note: "the anchors: the records do not hold, so there is nothing to compare" };
    if (evidence.members?.kind === "run")
      return { findings: null, note: "the anchors: they speak of a whole ledger, and this is one run" };
    try {
      return { findings: await anchorFindings(state.anchors, evidence, state.trusted), note: null };
    } catch (error) {
      if (!(error instanceof Finding)) throw error;
      return { findings: null, note: error.message };
    }
  }

  async function rows({ from, to, ticket }) {
    if (state.evidence === null) return;
    const positions = [];
    const count = state.matches?.length ?? archive().count;
    for (let at = Math.max(0, from); at < Math.min(to, count); at++)
      positions.push(state.matches?.[at] ?? at);
    const found = await Promise.all(positions.map((position) => archive().read(position)));
    post({ type: "rows", from: Math.max(0, from), rows: found, ticket });
  }

  /** Finds what matches. A newer query ends an older one at its next chunk. */
  async function filter({ query }) {
    const mine = ++state.query;
    if (state.evidence === null) return;
    if ((query.text ?? "").trim() === "" && !query.event) {
      state.matches = null;
      post({ type: "filtered", count: archive().count, all: true });
      return;
    }
    const test = compileQuery(query);
    const found = [];
    const done = await archive().scan(
      (row) => {
        if (test(row)) found.push(row.position);
      },
      (at, total) => {
        post({ type: "searching", done: at, total, found: found.length });
        return mine === state.query;
      },
    );
    if (!done || mine !== state.query) return;
    state.matches = Float64Array.from(found);
    post({ type: "filtered", count: found.length, all: false });
  }

  /** Where a record stands in the list as it is filtered now, or -1. */
  function place({ position, ticket }) {
    const index = state.matches === null ? position : state.matches.indexOf(position);
    post({ type: "placed", index, position, ticket });
  }

  async function answer(message) {
    try {
      await answers[message.type](message);
    } catch (error) {
      const text = error instanceof Finding ? error.message : `could not be read: ${error.message}`;
      post({ type: "failed", text, of: message.type, name: message.file?.name ?? message.name ?? null });
    }
  }

  // What changes the session happens one after the other; looking at rows does not wait for it.
  const answers = { open, addKey, dropKey, rows, filter, place };
  const changes = new Set(["open", "addKey", "dropKey"]);
  let last = Promise.resolve();
  return (message) => {
    if (!changes.has(message.type)) return answer(message);
    last = last.then(() => answer(message));
    return last;
  };
}

/** Inside a worker the session answers the page's messages; in a page this does nothing. */
if (typeof WorkerGlobalScope !== "undefined" && globalThis instanceof WorkerGlobalScope) {
  const session = createSession((message) => globalThis.postMessage(message));
  globalThis.onmessage = ({ data }) => session(data);
  globalThis.postMessage({ type: "ready" });
}
