/**
 * Reads git's index (versions 2 to 4) without git: which paths it tracks, and its meaning without the cached times and
 * inodes, which every `git status` rewrites.
 */

export interface GitIndexContent {
  tracked: string[];
  /** Equal for two files that stage the same contents. */
  meaning: string;
}

const HEADER_BYTES = 12;
/** Times, device, inode. Cached values; the mode follows. */
const CACHED_BYTES = 24;
const MODE_BYTES = 4;
/** Owner, group, size. Cached values; the object's name follows. */
const OWNER_BYTES = 12;
const EXTENDED = 0x4000;
/** Everything in the flags except the length of the name. */
const FLAG_BITS = 0xf000;

/** Null for a form that is not known. The file then counts byte for byte. */
export function readGitIndex(bytes: Buffer): GitIndexContent | null {
  if (bytes.length < HEADER_BYTES || bytes.toString("latin1", 0, 4) !== "DIRC") return null;
  const version = bytes.readUInt32BE(4);
  const count = bytes.readUInt32BE(8);
  if (version < 2 || version > 4) return null;
  for (const hash_bytes of [20, 32]) {
    const found = entriesOf(bytes, { version, count, hash_bytes });
    if (found !== null) return found;
  }
  return null;
}

interface IndexForm {
  version: number;
  count: number;
  hash_bytes: number;
}

function entriesOf(bytes: Buffer, form: IndexForm): GitIndexContent | null {
  const tracked: string[] = [];
  const parts: string[] = [];
  let at = HEADER_BYTES;
  let last = Buffer.alloc(0);
  for (let n = 0; n < form.count; n++) {
    const entry = entryAt(bytes, at, last, form);
    if (entry === null) return null;
    tracked.push(entry.name.toString("utf8"));
    parts.push(`${entry.meaning} ${entry.name.toString("latin1")}`);
    last = entry.name;
    at = entry.end;
  }
  // What follows are extensions and the checksum.
  if (at + form.hash_bytes > bytes.length || !isExtensions(bytes, at, form)) return null;
  return { tracked, meaning: parts.join("\n") };
}

function entryAt(
  bytes: Buffer,
  start: number,
  last: Buffer<ArrayBufferLike>,
  { version, hash_bytes }: IndexForm,
) {
  const object = start + CACHED_BYTES + MODE_BYTES + OWNER_BYTES;
  let at = object + hash_bytes + 2;
  if (at + 2 > bytes.length) return null;
  const mode = bytes.readUInt32BE(start + CACHED_BYTES);
  const flags = bytes.readUInt16BE(at - 2);
  let extended = 0;
  if ((flags & EXTENDED) !== 0) {
    if (version === 2) return null;
    extended = bytes.readUInt16BE(at);
    at += 2;
  }
  let kept = Buffer.alloc(0) as Buffer<ArrayBufferLike>;
  if (version === 4) {
    const strip = varintAt(bytes, at);
    if (strip === null || strip.value > last.length) return null;
    kept = last.subarray(0, last.length - strip.value);
    at = strip.end;
  }
  const zero = bytes.indexOf(0, at);
  if (zero < 0) return null;
  const name = Buffer.concat([kept, bytes.subarray(at, zero)]);
  if (name.length === 0) return null;
  const end = version === 4 ? zero + 1 : start + Math.ceil((zero + 1 - start) / 8) * 8;
  const hash = bytes.toString("hex", object, object + hash_bytes);
  return { name, end, meaning: `${mode.toString(8)} ${hash} ${flags & FLAG_BITS} ${extended}` };
}

function varintAt(bytes: Buffer, start: number): { value: number; end: number } | null {
  let at = start;
  let value = 0;
  for (let first = true; at < bytes.length; first = false) {
    const byte = bytes[at++]!;
    value = ((first ? value : value + 1) << 7) | (byte & 0x7f);
    if ((byte & 0x80) === 0) return { value, end: at };
  }
  return null;
}

/** A wrong length of hashes does not end at a chain of extensions that fills the file. */
function isExtensions(bytes: Buffer, start: number, { hash_bytes }: IndexForm): boolean {
  const end = bytes.length - hash_bytes;
  let at = start;
  while (at < end) {
    if (at + 8 > end || !/^[A-Za-z]{4}$/.test(bytes.toString("latin1", at, at + 4))) return false;
    at += 8 + bytes.readUInt32BE(at + 4);
  }
  return at === end;
}
