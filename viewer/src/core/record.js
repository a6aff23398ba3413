// One ledger record on its own: its shape, its canonical text and its hash. What its neighbours say about it is in
// chain.js.

import { Finding } from "./finding.js";
import { brief, canonicalString, parseStrict } from "./json.js";
import { sha256, toHex } from "./sha256.js";

export const GENESIS = "0".repeat(64);
const HASH = /^[0-9a-f]{64}$/;
const COUNTS = ["seq", "ts_ms", "run_seq", "step"];
const TEXTS = ["event", "run_id", "tool", "actor", "prev", "hash"];
const NEEDED = ["seq", "ts_ms", "event", "prev", "hash"];

const utf8Encoder = new TextEncoder();
let leafInput = new Uint8Array(1 << 16);

export function isHash(value) {
  return typeof value === "string" && HASH.test(value);
}

export function isCount(value) {
  return Number.isSafeInteger(value) && value >= 0;
}

function isScalar(value) {
  return typeof value === "string" || typeof value === "boolean" || Number.isSafeInteger(value);
}

/** Refuses what is no record. Fields this version does not know are allowed: the hash covers them. */
function checkShape(record) {
  if (record === null || typeof record !== "object" || Array.isArray(record)) {
    throw new Finding("is not a JSON object");
  }
  for (const field of NEEDED) if (!Object.hasOwn(record, field)) throw new Finding(`has no ${field}`);
  for (const field of Object.keys(record)) {
    const value = record[field];
    if (!isScalar(value) && !(Array.isArray(value) && value.every(isScalar))) {
      throw new Finding(`its ${brief(field)} is neither text, integer, boolean nor a list of those`);
    }
  }
  for (const field of COUNTS) {
    if (Object.hasOwn(record, field) && !isCount(record[field]))
      throw new Finding(`its ${field} is not a count`);
  }
  for (const field of TEXTS) {
    if (Object.hasOwn(record, field) && typeof record[field] !== "string") {
      throw new Finding(`its ${field} is not text`);
    }
  }
  for (const field of ["prev", "hash"]) {
    if (!HASH.test(record[field])) throw new Finding(`its ${field} is not 64 lowercase hex digits`);
  }
  if (Object.hasOwn(record, "run_id") !== Object.hasOwn(record, "run_seq")) {
    throw new Finding("has one of run_id and run_seq without the other");
  }
}

function scalarText(value) {
  return typeof value === "string" ? canonicalString(value) : String(value);
}

function valueText(value) {
  return Array.isArray(value) ? `[${value.map(scalarText).join(",")}]` : scalarText(value);
}

/** The canonical text of a record of good shape, whole and without its hash. */
function recordTexts(record) {
  let whole = "";
  let body = "";
  for (const field of Object.keys(record).sort()) {
    const member = `${canonicalString(field)}:${valueText(record[field])}`;
    whole += whole === "" ? member : `,${member}`;
    if (field !== "hash") body += body === "" ? member : `,${member}`;
  }
  return { whole: `{${whole}}`, body: `{${body}}` };
}

/**
 * Reads and checks one record from its text: `{record, leaf, isCanonical}`. The leaf is the RFC 6962 hash of the
 * very bytes that the record's own hash covers, so both come from one buffer that starts with the leaf's 0x00.
 */
export function readRecord(text) {
  let record;
  try {
    record = JSON.parse(text);
  } catch {
    record = parseStrict(text); // for its reason
  }
  checkShape(record);
  let texts = recordTexts(record);
  const isCanonical = texts.whole === text;
  if (!isCanonical || Object.hasOwn(record, "__proto__")) {
    // JSON.parse forgives what strictness does not, such as a key that appears twice.
    record = parseStrict(text);
    checkShape(record);
    texts = recordTexts(record);
  }
  if (leafInput.length < texts.body.length * 3 + 1) leafInput = new Uint8Array(texts.body.length * 3 + 1);
  leafInput[0] = 0;
  const { written } = utf8Encoder.encodeInto(texts.body, leafInput.subarray(1));
  if (toHex(sha256(leafInput.subarray(1, written + 1))) !== record.hash) {
    throw new Finding("its content does not match its hash: it was changed");
  }
  return { record, leaf: sha256(leafInput.subarray(0, written + 1)), isCanonical };
}
