/**
 * Encrypts tokens at rest: AES-256-GCM with a key from a file. A text is bound to the place that it was encrypted for,
 * so it cannot be moved to another person's row. A previous key decrypts until everything has the current one.
 */
import { createCipheriv, createDecipheriv } from "node:crypto";
import { readFileSync } from "node:fs";
import type { SealedText } from "../govern/upstreams/consent-doc.ts";
import { invalidError, SvcError } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

interface VaultKey {
  id: string;
  bytes: Buffer;
}

function readKey(file: string): VaultKey {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    const { code = "unreadable" } = error as NodeJS.ErrnoException;
    throw invalidError(
      `token_key: ${file} cannot be read (${code}); create it with: openssl rand -out <file> 32`,
    );
  }
  if (bytes.length !== KEY_BYTES || new Set(bytes).size < 8)
    throw invalidError(
      `token_key: ${file} must hold exactly ${KEY_BYTES} random bytes; create it with: openssl rand -out <file> 32`,
    );
  return { id: sha256Hex(Buffer.concat([Buffer.from("svc token key "), bytes])).slice(0, 16), bytes };
}

export class TokenVault {
  private readonly current: VaultKey;
  private readonly known: ReadonlyMap<string, VaultKey>;
  private readonly random: (length: number) => Uint8Array;

  constructor(files: { current: string; previous: string | null }, random: (length: number) => Uint8Array) {
    this.current = readKey(files.current);
    const all = [this.current, ...(files.previous === null ? [] : [readKey(files.previous)])];
    this.known = new Map(all.map((key) => [key.id, key]));
    this.random = random;
  }

  seal(text: string, place: string): SealedText {
    const nonce = this.random(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.current.bytes, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.from(place));
    const parts = [nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()];
    return { key: this.current.id, text: Buffer.concat(parts).toString("base64url") };
  }

  /** Throws `unavailable` for a text of an unknown key or another place, and for a changed one. */
  open({ key, text }: SealedText, place: string): string {
    const found = this.known.get(key);
    if (found === undefined)
      throw new SvcError(
        "unavailable",
        "the tokens are encrypted with another token_key; set the one they need",
      );
    const bytes = Buffer.from(text, "base64url");
    try {
      const decipher = createDecipheriv("aes-256-gcm", found.bytes, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.from(place));
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      const body = bytes.subarray(NONCE_BYTES, -TAG_BYTES);
      return decipher.update(body, undefined, "utf8") + decipher.final("utf8");
    } catch {
      throw new SvcError(
        "unavailable",
        "the stored tokens are damaged or belong to another place; connect again",
      );
    }
  }

  /** Whether one of the keys is the text's. */
  knows({ key }: SealedText): boolean {
    return this.known.has(key);
  }

  isCurrent({ key }: SealedText): boolean {
    return key === this.current.id;
  }
}
