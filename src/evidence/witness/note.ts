/**
 * Signed notes (C2SP signed-note): a text, an empty line, and one line per signature. A signature line belongs to a
 * verifier key only if both its name and its key id match.
 */
import { createHash } from "node:crypto";
import { invalidError } from "../../kernel/errors.ts";
import { type PublicKey, parseRawKey, type SigningKey, strictBase64 } from "../signing.ts";

/** Type byte of a signature over the note's text. */
export const NOTE_SIGNATURE = 0x01;
export const COSIGNATURE_TYPE = 0x04;

export interface NoteSignature {
  name: string;
  /** Four bytes, in hex. */
  key_id: string;
  bytes: Buffer;
  line: string;
}

export interface SignedNote {
  /** Includes the last line break. */
  body: string;
  signatures: NoteSignature[];
}

export const MAX_NOTE_CHARS = 65_536;
const MAX_SIGNATURES = 100;
/** Excludes Unicode spaces, listed explicitly so that all verifiers agree on them. */
const NAME = /^[^ \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000+]+$/u;
const CONTROL = /[\0-\x09\x0b-\x1f]/;

export function isKeyName(name: string): boolean {
  return (
    name.length <= 255 && name.isWellFormed() && !CONTROL.test(name) && !/\n/.test(name) && NAME.test(name)
  );
}

export function noteKeyId(name: string, type: number, raw: Uint8Array): string {
  const hash = createHash("sha256")
    .update(`${name}\n`, "utf8")
    .update(Buffer.from([type]))
    .update(raw);
  return hash.digest().subarray(0, 4).toString("hex");
}

export function signatureLine(name: string, key_id: string, bytes: Uint8Array): string {
  const text = Buffer.concat([Buffer.from(key_id, "hex"), bytes]).toString("base64");
  return `\u2014 ${name} ${text}\n`;
}

/** Signature line of `key` under `name`. */
export function signNote(body: string, name: string, key: SigningKey): string {
  return signatureLine(name, noteKeyId(name, NOTE_SIGNATURE, key.raw), key.signText(body));
}

/** Parses a note, or returns the problem. */
export function parseNote(text: string): SignedNote | string {
  if (text.length > MAX_NOTE_CHARS) return "the note is too long";
  if (!text.isWellFormed() || CONTROL.test(text)) return "the note contains invalid characters";
  const at = text.lastIndexOf("\n\n");
  if (at < 1) return "the note has no signatures";
  const body = text.slice(0, at + 1);
  const lines = text.slice(at + 2);
  if (!lines.endsWith("\n")) return "the note does not end in a line break";
  const signatures = parseSignatures(lines);
  return typeof signatures === "string" ? signatures : { body, signatures };
}

/** Parses separate signature lines, as in a witness's response. */
export function parseSignatures(text: string): NoteSignature[] | string {
  const lines = text.split("\n");
  if (lines.pop() !== "" || lines.length === 0) return "there is no signature line";
  if (lines.length > MAX_SIGNATURES) return "there are too many signatures";
  const found: NoteSignature[] = [];
  for (const line of lines) {
    const [dash, name, coded, ...rest] = line.split(" ");
    const bytes = strictBase64(coded ?? "");
    if (
      dash !== "\u2014" ||
      name === undefined ||
      rest.length > 0 ||
      !isKeyName(name) ||
      !bytes ||
      bytes.length < 5
    )
      return "a signature line is not an em dash, a key name and base64";
    const key_id = bytes.subarray(0, 4).toString("hex");
    found.push({ name, key_id, bytes: bytes.subarray(4), line: `${line}\n` });
  }
  return found;
}

/** A key whose signatures are searched. Without a name, the key matches under any name. */
export interface VerifierKey {
  name: string | null;
  type: typeof NOTE_SIGNATURE | typeof COSIGNATURE_TYPE;
  key: PublicKey;
}

export function isSignedBy(
  { name, key_id }: NoteSignature,
  { name: known, type, key }: VerifierKey,
): boolean {
  return (known === null || known === name) && key_id === noteKeyId(name, type, key.raw);
}

export function verifierKeyText({ name, type, key }: VerifierKey & { name: string }): string {
  const coded = Buffer.concat([Buffer.from([type]), key.raw]).toString("base64");
  return `${name}+${noteKeyId(name, type, key.raw)}+${coded}`;
}

/** Parses `<name>+<key id>+<type and key>`, the C2SP form of a verifier key. Throws if it is invalid. */
export function parseVerifierKey(text: string, what: string): VerifierKey & { name: string } {
  const [, name = "", stated, coded = ""] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(text.trim()) ?? [];
  const bytes = strictBase64(coded);
  if (!isKeyName(name) || bytes === undefined)
    throw invalidError(`${what}: is not a verifier key of the form <name>+<8 hex digits>+<base64>`);
  const type = bytes[0];
  if (type !== NOTE_SIGNATURE && type !== COSIGNATURE_TYPE)
    throw invalidError(
      `${what}: is a key of an unsupported type; Ed25519 keys (types 1 and 4) are supported`,
    );
  const key = parseRawKey(bytes.subarray(1), what);
  if (noteKeyId(name, type, key.raw) !== stated)
    throw invalidError(`${what}: its key id does not belong to its name and key`);
  return { name, type, key };
}
