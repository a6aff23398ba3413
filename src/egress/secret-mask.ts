/**
 * Masks secrets in text and in streams: as they are, in base64, base64url, percent-encoded, hexadecimal and inside JSON
 * strings, wherever chunks divide them. A floor: other encodings pass.
 */
import { Transform, type TransformCallback } from "node:stream";

const MASK = Buffer.from("********");
/** A shorter secret would mask ordinary text. */
export const MIN_SECRET_CHARS = 8;

/** The byte sequences that a secret can come back as. */
export function spellingsOf(secret: string): Buffer[] {
  const bytes = Buffer.from(secret, "utf8");
  const hex = bytes.toString("hex");
  const percent = hex.replace(/../g, "%$&");
  const component = encodeURIComponent(secret.toWellFormed());
  const texts = [
    secret,
    JSON.stringify(secret).slice(1, -1),
    JSON.stringify(secret).slice(1, -1).replaceAll("/", "\\/"),
    hex,
    hex.toUpperCase(),
    percent,
    percent.toUpperCase(),
    component,
    component.replace(/%../g, (triplet) => triplet.toLowerCase()),
    new URLSearchParams([["", secret]]).toString().slice(1),
    ...[0, 1, 2].flatMap((offset) => base64Within(bytes, offset)),
  ];
  return [...new Set(texts)]
    .filter((text) => text.length >= MIN_SECRET_CHARS)
    .map((text) => Buffer.from(text));
}

/** The characters of the base64 of a longer text that these bytes alone decide, at one of the three alignments. */
function base64Within(bytes: Buffer, offset: number): string[] {
  const padded = Buffer.concat([Buffer.alloc(offset), bytes]);
  const from = Math.ceil((offset * 8) / 6);
  const to = Math.floor((padded.length * 8) / 6);
  return (["base64", "base64url"] as const).map((coding) => padded.toString(coding).slice(from, to));
}

export class SecretMask {
  private readonly needles: readonly Buffer[];

  constructor(secrets: readonly string[]) {
    // Longest first, so that of two overlapping secrets the longer one is masked in full.
    this.needles = secrets.flatMap(spellingsOf).sort((a, b) => b.length - a.length);
  }

  get isEmpty(): boolean {
    return this.needles.length === 0;
  }

  text(text: string): string {
    return this.isEmpty ? text : this.mask(Buffer.from(text, "latin1"), true).out.toString("latin1");
  }

  /** A stream that passes everything on at once but what may be the begin of a secret. */
  stream(): Transform {
    const mask = (bytes: Buffer, isEnd: boolean) => this.mask(bytes, isEnd);
    let rest: Buffer = Buffer.alloc(0);
    return new Transform({
      transform(chunk: Buffer, _encoding, done: TransformCallback) {
        const masked = mask(rest.length === 0 ? chunk : Buffer.concat([rest, chunk]), false);
        rest = masked.rest;
        done(null, masked.out);
      },
      flush(done: TransformCallback) {
        done(null, mask(rest, true).out);
      },
    });
  }

  private mask(bytes: Buffer, isEnd: boolean): { out: Buffer; rest: Buffer } {
    const parts: Buffer[] = [];
    let at = 0;
    for (let found = this.first(bytes, at); found !== undefined; found = this.first(bytes, at)) {
      parts.push(bytes.subarray(at, found.at), MASK);
      at = found.at + found.length;
    }
    const kept = isEnd ? 0 : this.openEnd(bytes.subarray(at));
    parts.push(bytes.subarray(at, bytes.length - kept));
    return { out: Buffer.concat(parts), rest: bytes.subarray(bytes.length - kept) };
  }

  private first(bytes: Buffer, from: number): { at: number; length: number } | undefined {
    let best: { at: number; length: number } | undefined;
    for (const needle of this.needles) {
      const at = bytes.indexOf(needle, from);
      if (at >= 0 && (best === undefined || at < best.at)) best = { at, length: needle.length };
    }
    return best;
  }

  /** Length of the longest end that begins a secret. */
  private openEnd(bytes: Buffer): number {
    let longest = 0;
    for (const needle of this.needles)
      for (let n = Math.min(needle.length - 1, bytes.length); n > longest; n--)
        if (needle.compare(bytes, bytes.length - n, bytes.length, 0, n) === 0) longest = n;
    return longest;
  }
}
