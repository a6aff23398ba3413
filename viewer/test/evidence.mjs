// Makes good evidence with Node's own crypto, so that the tests can break it. Nothing of the viewer is used here.

import { createHash, generateKeyPairSync, sign } from "node:crypto";

export const GENESIS = "0".repeat(64);
const sha = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();

/** Canonical JSON of flat and nested values with ASCII keys. */
export function canonicalJson(value) {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`).join(",")}}`;
}

function bodyOf({ hash: _, ...body }) {
  return canonicalJson(body);
}

export const seal = (record) => ({ ...record, hash: sha(bodyOf(record)).toString("hex") });

/** The records with every prev and hash made to fit, as a forger would. */
export function rechain(records) {
  let prev = GENESIS;
  return records.map((record) => {
    const sealed = seal({ ...record, prev });
    prev = sealed.hash;
    return sealed;
  });
}

export function makeLedger(count) {
  const numbers = new Map();
  const texts = [
    "refund",
    "späte Buchung",
    'quote " and \\',
    "line\nbreak\u0001",
    "😀 \ue000\u2028",
    "<img src=x onerror=alert(1)>",
  ];
  return rechain(
    Array.from({ length: count }, (_, seq) => {
      const run_id = `run_${seq % 3}`;
      const run_seq = numbers.get(run_id) ?? 0;
      numbers.set(run_id, run_seq + 1);
      const own =
        seq % 7 === 6
          ? { event: "halted" }
          : { event: "intended", run_id, run_seq, step: run_seq, tool: "mail.send" };
      if (own.event === "halted") numbers.set(run_id, run_seq);
      const reason = texts[seq % texts.length];
      return {
        seq,
        ts_ms: 1_750_000_000_000 + seq,
        actor: "bot",
        reason,
        detail: [reason, seq, true],
        ...own,
      };
    }),
  );
}

export const toLines = (records) => records.map((record) => `${canonicalJson(record)}\n`).join("");

const leafOf = (record) => sha(Buffer.from([0]), bodyOf(record));

/** RFC 6962, 2.1 and 2.1.1, by their recursive definitions; the viewer works bottom up. */
function rootOf(leaves) {
  if (leaves.length === 0) return sha("");
  if (leaves.length === 1) return leaves[0];
  const k = largestPowerBelow(leaves.length);
  return sha(Buffer.from([1]), rootOf(leaves.slice(0, k)), rootOf(leaves.slice(k)));
}

function pathOf(index, leaves) {
  if (leaves.length <= 1) return [];
  const k = largestPowerBelow(leaves.length);
  return index < k
    ? [...pathOf(index, leaves.slice(0, k)), rootOf(leaves.slice(k))]
    : [...pathOf(index - k, leaves.slice(k)), rootOf(leaves.slice(0, k))];
}

const largestPowerBelow = (size) => 2 ** (Math.ceil(Math.log2(size)) - 1);

export function makeSigner() {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const raw = publicKey.export({ type: "spki", format: "der" }).subarray(12);
  return {
    keyId: sha(raw).toString("hex").slice(0, 16),
    pem: publicKey.export({ type: "spki", format: "pem" }),
    raw,
    sign: (text) => sign(null, Buffer.from(text), privateKey).toString("base64"),
  };
}

/** A bundle of the whole ledger, or of one of its runs. */
export function makeBundle(records, signer, run_id = null) {
  const leaves = records.map(leafOf);
  const chosen = run_id === null ? records : records.filter((record) => record.run_id === run_id);
  const hex = (path) => path.map((hash) => hash.toString("hex"));
  const proofs =
    run_id === null ? {} : Object.fromEntries(chosen.map(({ seq }) => [seq, hex(pathOf(seq, leaves))]));
  return signBundle(
    {
      format: "svc-bundle",
      version: 1,
      kind: run_id === null ? "ledger" : "run",
      run_id,
      exported_ms: 1_750_000_100_000,
      head: records.at(-1)?.hash ?? GENESIS,
      records: chosen,
      count: chosen.length,
      tree: { size: leaves.length, root: rootOf(leaves).toString("hex") },
      proofs,
      key_id: signer.keyId,
      public_key: signer.pem,
    },
    signer,
  );
}

/** The bundle signed over what it says now, true or not. */
export function signBundle(bundle, signer) {
  const { format, version, kind, run_id, exported_ms, head, count, tree, key_id } = bundle;
  const summary = { format, version, kind, exported_ms, head, count, tree, key_id };
  if (run_id !== null) summary.run_id = run_id;
  if (bundle.records.length > 0) {
    summary.first_seq = bundle.records[0].seq;
    summary.last_seq = bundle.records.at(-1).seq;
  }
  return { ...bundle, signature: signer.sign(`svc-bundle/v1\n${canonicalJson(summary)}`) };
}

export function makeAnchor(records, signer, more = {}) {
  const tree = { size: records.length, root: rootOf(records.map(leafOf)).toString("hex") };
  const head = records.at(-1)?.hash ?? GENESIS;
  const anchor = {
    format: "svc-anchor",
    version: 1,
    ts_ms: 1_750_000_200_000,
    head,
    records: records.length,
    tree,
    ...more,
  };
  if (signer === null) return anchor;
  anchor.key_id = signer.keyId;
  return { ...anchor, signature: signer.sign(`svc-anchor/v1\n${canonicalJson(anchor)}`) };
}
