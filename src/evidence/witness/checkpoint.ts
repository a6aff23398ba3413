/**
 * Checkpoints (C2SP tlog-checkpoint): the size and root of a log as a note that the log signs and witnesses cosign
 * (C2SP tlog-cosignature, Ed25519).
 */
import { verify as verifyBytes } from "node:crypto";
import { type PublicKey, type SigningKey, strictBase64 } from "../signing.ts";
import {
  COSIGNATURE_TYPE,
  isSignedBy,
  NOTE_SIGNATURE,
  type NoteSignature,
  noteKeyId,
  parseNote,
  type SignedNote,
  signatureLine,
  signNote,
  type VerifierKey,
} from "./note.ts";

/** State of a log: the number of leaves, and the root over them in hex. */
export interface TreeHead {
  origin: string;
  size: number;
  root: string;
}

export interface SignedTreeHead extends TreeHead {
  note: SignedNote;
}

export function checkpointBody({ origin, size, root }: TreeHead): string {
  return `${origin}\n${size}\n${Buffer.from(root, "hex").toString("base64")}\n`;
}

/** The note signed by the log itself. Its key has the name of the log. */
export function signCheckpoint(head: TreeHead, key: SigningKey, cosignatures = ""): string {
  const body = checkpointBody(head);
  return `${body}\n${signNote(body, head.origin, key)}${cosignatures}`;
}

/** Parses a checkpoint, or returns the problem. Its content is untrusted until a signature is checked. */
export function parseCheckpoint(text: string): SignedTreeHead | string {
  const note = parseNote(text);
  if (typeof note === "string") return note;
  const [origin = "", count = "", coded = "", ...more] = note.body.slice(0, -1).split("\n");
  if (origin === "" || more.includes("")) return "the checkpoint has an empty line where none may be";
  const size = /^(?:0|[1-9]\d{0,15})$/.test(count) ? Number(count) : Number.NaN;
  if (!Number.isSafeInteger(size)) return "the checkpoint's second line is not a tree size";
  const root = strictBase64(coded);
  if (root?.length !== 32) return "the checkpoint's third line is not a root hash in base64";
  return { origin, size, root: root.toString("hex"), note };
}

type LogSignature = "good" | "bad" | "none";

/** Whether the log signed. `bad`: a line claims to be by the key and does not verify. */
export function logSignature({ note }: SignedTreeHead, keys: readonly VerifierKey[]): LogSignature {
  let found: LogSignature = "none";
  for (const signature of note.signatures) {
    const key = keys.find((one) => isSignedBy(signature, one));
    if (key === undefined) continue;
    if (!isGoodSignature(note.body, signature.bytes, key)) return "bad";
    found = "good";
  }
  return found;
}

export function logKey(origin: string, key: PublicKey): VerifierKey {
  return { name: origin, type: NOTE_SIGNATURE, key };
}

function isGoodSignature(body: string, bytes: Buffer, key: VerifierKey): boolean {
  if (key.type === COSIGNATURE_TYPE) return cosignatureTime(body, bytes, key) !== null;
  return bytes.length === 64 && verifyBytes(null, Buffer.from(body), key.key.key, bytes);
}

const cosignedText = (body: string, seconds: bigint): string => `cosignature/v1\ntime ${seconds}\n${body}`;

/** Cosignature line of a witness: this is the largest consistent tree it has seen. */
export function cosignatureLine(body: string, name: string, key: SigningKey, seconds: number): string {
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(seconds));
  const signature = key.signText(cosignedText(body, BigInt(seconds)));
  return signatureLine(name, noteKeyId(name, COSIGNATURE_TYPE, key.raw), Buffer.concat([time, signature]));
}

/** Time of a cosignature in seconds; null if it is invalid. */
function cosignatureTime(body: string, bytes: Buffer, key: VerifierKey): number | null {
  if (bytes.length !== 72) return null;
  const seconds = bytes.readBigUInt64BE(0);
  if (seconds === 0n || seconds > BigInt(Number.MAX_SAFE_INTEGER)) return null;
  const message = Buffer.from(cosignedText(body, seconds));
  return verifyBytes(null, message, key.key.key, bytes.subarray(8)) ? Number(seconds) : null;
}

export interface WitnessCosignature {
  name: string;
  key_id: string;
  seconds: number;
  line: string;
}

/** Newest cosignature of the witness; null if there is none, `bad` if one is invalid. */
export function cosignatureOf(
  body: string,
  signatures: readonly NoteSignature[],
  witness: VerifierKey,
): WitnessCosignature | null | "bad" {
  let newest: WitnessCosignature | null = null;
  for (const signature of signatures) {
    if (!isSignedBy(signature, witness)) continue;
    const seconds = cosignatureTime(body, signature.bytes, witness);
    if (seconds === null) return "bad";
    if (newest === null || seconds > newest.seconds)
      newest = { name: signature.name, key_id: witness.key.key_id, seconds, line: signature.line };
  }
  return newest;
}
