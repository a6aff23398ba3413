// Checkpoints that a bundle carries, and the witnesses who cosigned them (C2SP signed-note, tlog-checkpoint,
// tlog-cosignature). A cosignature covers the records up to its checkpoint, and none behind it.

import { keyPoint, verifyEd25519 } from "./ed25519.js";
import { Finding } from "./finding.js";
import { strictBase64 } from "./keys.js";
import { provesConsistency } from "./merkle.js";
import { isHash } from "./record.js";
import { fromHex, sha256, toHex } from "./sha256.js";

const NOTE_TYPE = 1;
const COSIGNATURE_TYPE = 4;
const KEY_NAME = /^[^ \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000+]+$/u;
const CONTROLS = /[\0-\x09\x0b-\x1f]/;
const VERIFIER_KEY = /^([^+\s]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)$/;
const noteText = new TextEncoder();

export function looksLikeWitness(text) {
  return VERIFIER_KEY.test(text.trim());
}

/** `{name, raw, keyId}` of a witness's verifier key, as `svc witness serve` prints it. */
export function parseWitness(text) {
  const [, name, stated, coded] = VERIFIER_KEY.exec(text.trim()) ?? [];
  const data = coded === undefined ? null : strictBase64(coded);
  if (data === null || data.length !== 33 || keyPoint(data.slice(1)) === null)
    throw new Finding("is no verifier key of a usable Ed25519 key");
  if (data[0] !== COSIGNATURE_TYPE) throw new Finding("is not the key of a witness, which has type 4");
  const raw = data.slice(1);
  if (noteKeyId(name, COSIGNATURE_TYPE, raw) !== stated)
    throw new Finding("has a key id that does not belong to its name and key");
  return { name, raw, keyId: toHex(sha256(raw)).slice(0, 16) };
}

function noteKeyId(name, type, raw) {
  const head = noteText.encode(`${name}\n`);
  const input = new Uint8Array(head.length + 1 + raw.length);
  input.set(head);
  input[head.length] = type;
  input.set(raw, head.length + 1);
  return toHex(sha256(input)).slice(0, 8);
}

function parseNote(text) {
  if (text.length > 65_536 || !text.isWellFormed() || CONTROLS.test(text))
    throw new Finding("a checkpoint in it is too long or holds characters that none may hold");
  const at = text.lastIndexOf("\n\n");
  if (at < 1 || !text.endsWith("\n")) throw new Finding("a checkpoint in it has no signatures");
  const lines = text.slice(at + 2).split("\n");
  lines.pop();
  if (lines.length === 0 || lines.length > 100)
    throw new Finding("a checkpoint in it has no signatures, or too many");
  return { body: text.slice(0, at + 1), signatures: lines.map(parseSignatureLine) };
}

function parseSignatureLine(line) {
  const parts = line.split(" ");
  const data = parts.length === 3 && parts[0] === "\u2014" ? strictBase64(parts[2]) : null;
  if (data === null || data.length < 5 || parts[1].length > 255 || !KEY_NAME.test(parts[1]))
    throw new Finding("a signature line of a checkpoint in it is not a dash, a name and base64");
  return { name: parts[1], keyId: toHex(data.slice(0, 4)), data: data.slice(4) };
}

function parseCheckpoint(text) {
  const { body, signatures } = parseNote(text);
  const lines = body.slice(0, -1).split("\n");
  if (lines.length < 3 || lines.includes(""))
    throw new Finding("a checkpoint in it is not an origin, a size and a root");
  const size = /^(?:0|[1-9]\d{0,15})$/.test(lines[1]) ? Number(lines[1]) : Number.NaN;
  const root = strictBase64(lines[2]);
  if (!Number.isSafeInteger(size) || root === null || root.length !== 32)
    throw new Finding("a checkpoint in it has no tree size or no root");
  return { origin: lines[0], size, root: toHex(root), body, signatures };
}

/** The shape of `checkpoints`: a list of {note, consistency}. */
export function checkCarried(list) {
  const good = Array.isArray(list) && list.length <= 32 && list.every(isCarried);
  if (!good) throw new Finding("its checkpoints are not a list of {note, consistency}");
}

function isCarried(one) {
  const isObject = one !== null && typeof one === "object" && !Array.isArray(one);
  if (!isObject || Object.keys(one).sort().join() !== "consistency,note" || typeof one.note !== "string")
    return false;
  return Array.isArray(one.consistency) && one.consistency.length <= 64 && one.consistency.every(isHash);
}

/**
 * Who of the witnesses cosigned what. `raw` is the key that the bundle's own signature was checked with. Throws where
 * a checkpoint does not hold, where fewer than `quorum` cosigned, or where a record lies behind what enough of them saw.
 */
export async function checkWitnesses({ members, lastOther }, raw, witnesses, quorum, native) {
  const best = new Map();
  for (const { note, consistency } of members.checkpoints ?? []) {
    const checkpoint = parseCheckpoint(note);
    await checkLog(checkpoint, raw, native);
    const path = consistency.map(fromHex);
    if (!provesConsistency(checkpoint.size, members.tree.size, path, checkpoint.root, members.tree.root))
      throw new Finding(
        `its tree does not continue the checkpoint of ${checkpoint.size} records that it carries`,
      );
    for (const witness of witnesses) {
      const seen = await cosignature(checkpoint, witness, native);
      const known = best.get(witness.keyId);
      if (seen !== null && (known === undefined || seen.size >= known.size)) best.set(witness.keyId, seen);
    }
  }
  const by = [...best.values()].sort((a, b) => b.size - a.size);
  if (by.length < quorum)
    throw new Finding(
      `${quorum} of the ${witnesses.length} witnesses given must have cosigned it, and ${by.length} did`,
    );
  const covered = quorum === 0 ? 0 : by[quorum - 1].size;
  if (witnesses.length > 0 && lastOther !== null && lastOther >= covered)
    throw new Finding(
      `record ${lastOther} was not seen by enough witnesses: they cosigned the first ${covered} records`,
    );
  return { by, covered };
}

async function checkLog({ origin, body, signatures }, raw, native) {
  let isSigned = false;
  for (const { name, keyId, data } of signatures) {
    if (name !== origin || keyId !== noteKeyId(name, NOTE_TYPE, raw)) continue;
    if (data.length !== 64 || !(await verifyEd25519(raw, noteText.encode(body), data, { native })))
      throw new Finding("a checkpoint in it is not signed with its key");
    isSigned = true;
  }
  if (!isSigned) throw new Finding("a checkpoint in it is not signed with its key");
}

async function cosignature({ size, body, signatures }, witness, native) {
  let newest = null;
  for (const { name, keyId, data } of signatures) {
    if (name !== witness.name || keyId !== noteKeyId(name, COSIGNATURE_TYPE, witness.raw)) continue;
    const time = data.length === 72 ? new DataView(data.buffer, data.byteOffset).getBigUint64(0) : 0n;
    const message = noteText.encode(`cosignature/v1\ntime ${time}\n${body}`);
    const isTime = time > 0n && time <= BigInt(Number.MAX_SAFE_INTEGER);
    if (!isTime || !(await verifyEd25519(witness.raw, message, data.slice(8), { native })))
      throw new Finding("a witness's cosignature in it does not match its checkpoint");
    if (newest === null || Number(time) > newest.seconds) newest = { name, size, seconds: Number(time) };
  }
  return newest;
}
