/**
 * Checkpoints (C2SP tlog-checkpoint): where a log stands, as a note that the log signs and witnesses cosign
 * (C2SP tlog-cosignature, Ed25519).
 */
import { verify as verifyBytes } from "node:crypto";
import { type PublicKey, type SigningKey, strictBase64 } from "../signing.ts";
import {
  COSIGNATURE,
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

/** Where a log stands: how many leaves, and the root over them in hex. */
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

/** The note that the log itself signs; its key is named like the log. */
export function signCheckpoint(head: TreeHead, key: SigningKey, cosignatures = ""): string {
  const body = checkpointBody(head);
  return `${body}\n${signNote(body, head.origin, key)}${cosignatures}`;
}

/** The checkpoint, or what is wrong with it. Nothing of it counts before a signature was checked. */
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

/** Whether the log signed: `bad` where a line claims to be the key's and does not verify. */
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
  if (key.type === COSIGNATURE) return cosignatureTime(body, bytes, key) !== null;
  return bytes.length === 64 && verifyBytes(null, Buffer.from(body), key.key.key, bytes);
}

const cosignedText = (body: string, seconds: bigint): string => `cosignature/v1\ntime ${seconds}\n${body}`;

/** The line with which a witness says that this is the largest consistent tree it has seen. */
export function cosign(body: string, name: string, key: SigningKey, seconds: number): string {
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(seconds));
  const signature = key.signText(cosignedText(body, BigInt(seconds)));
  return signatureLine(name, noteKeyId(name, COSIGNATURE, key.raw), Buffer.concat([time, signature]));
}

/** When the witness cosigned, in seconds; null where the signature does not hold. */
function cosignatureTime(body: string, bytes: Buffer, key: VerifierKey): number | null {
  if (bytes.length !== 72) return null;
  const seconds = bytes.readBigUInt64BE(0);
  if (seconds === 0n || seconds > BigInt(Number.MAX_SAFE_INTEGER)) return null;
  const message = Buffer.from(cosignedText(body, seconds));
  return verifyBytes(null, message, key.key.key, bytes.subarray(8)) ? Number(seconds) : null;
}

export interface Cosignature {
  name: string;
  key_id: string;
  seconds: number;
  line: string;
}

/** What the witness said of the text: its newest cosignature, null where there is none, `bad` where one does not hold. */
export function cosignatureOf(
  body: string,
  signatures: readonly NoteSignature[],
  witness: VerifierKey,
): Cosignature | null | "bad" {
  let newest: Cosignature | null = null;
  for (const signature of signatures) {
    if (!isSignedBy(signature, witness)) continue;
    const seconds = cosignatureTime(body, signature.bytes, witness);
    if (seconds === null) return "bad";
    if (newest === null || seconds > newest.seconds)
      newest = { name: signature.name, key_id: witness.key.key_id, seconds, line: signature.line };
  }
  return newest;
}
