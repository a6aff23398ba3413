// Walking a file of any size in pieces: the lines of a ledger, and the records inside a bundle. Both give each
// record's bytes and where they lie, so that the file itself serves as the store to browse from.

import { Finding } from "./finding.js";

const CHUNK_BYTES = 4 << 20;
// A record holds at most what fits in a 1 MB request; escapes can make it larger, but not by this much.
const MAX_RECORD_BYTES = 16 << 20;
const MAX_REST_BYTES = 256 << 20;
const LF = 10;
const [QUOTE, COMMA, OPEN_LIST, BACKSLASH, CLOSE_LIST, OPEN, CLOSE] = [34, 44, 91, 92, 93, 123, 125];

/** Start and end of each record in the file, in two buffers that double as they grow. */
export class Extents {
  constructor() {
    this.count = 0;
    this.starts = new Float64Array(1024);
    this.ends = new Float64Array(1024);
  }

  push(start, end) {
    if (this.count === this.starts.length) {
      for (const name of ["starts", "ends"]) {
        const larger = new Float64Array(this.count * 2);
        larger.set(this[name]);
        this[name] = larger;
      }
    }
    this.starts[this.count] = start;
    this.ends[this.count] = end;
    this.count++;
  }
}

/** The file's bytes as chunks, each joined to what its reader left unused of the one before. */
async function* pieces(blob, onProgress) {
  let left = new Uint8Array(0);
  for (let at = 0; at < blob.size; at += CHUNK_BYTES) {
    const fresh = new Uint8Array(await blob.slice(at, at + CHUNK_BYTES).arrayBuffer());
    const bytes = new Uint8Array(left.length + fresh.length);
    bytes.set(left);
    bytes.set(fresh, left.length);
    const used = yield { bytes, offset: at - left.length, isLast: at + CHUNK_BYTES >= blob.size };
    left = bytes.subarray(used);
    if (left.length > MAX_RECORD_BYTES)
      throw new Finding("holds a line or value longer than any record can be");
    onProgress(Math.min(at + CHUNK_BYTES, blob.size), blob.size);
  }
}

/** Runs `step(bytes, offset, isLast)` over the file; it answers how many of the bytes it has used. */
async function walk(blob, onProgress, step) {
  const source = pieces(blob, onProgress);
  let next = await source.next();
  while (!next.done) {
    const { bytes, offset, isLast } = next.value;
    next = await source.next(step(bytes, offset, isLast));
  }
}

/** Calls `onLine(bytes, start, end, hasEnd)` for each line; only the last can lack its line end. */
export function eachLine(blob, onLine, onProgress = () => {}) {
  return walk(blob, onProgress, (bytes, offset, isLast) => {
    let start = 0;
    for (let end = bytes.indexOf(LF); end !== -1; end = bytes.indexOf(LF, start)) {
      onLine(bytes.subarray(start, end), offset + start, offset + end, true);
      start = end + 1;
    }
    if (isLast && start < bytes.length) {
      onLine(bytes.subarray(start), offset + start, offset + bytes.length, false);
      return bytes.length;
    }
    return start;
  });
}

/**
 * Takes the elements of the outermost `records` list out of a bundle as they pass, and keeps the bytes of all the
 * rest, with an empty list in their place. The rest is then small enough to be read strictly in one go. Whatever
 * this walk does not understand it leaves in the rest, for the strict reader to refuse.
 */
export class RecordCutter {
  constructor(onRecord) {
    this.onRecord = onRecord;
    this.lists = 0; // how many lists named "records" were cut; a good bundle has one
    this.rest = new Uint8Array(1 << 16);
    this.restLength = 0;
    this.depth = 0;
    this.key = null;
    this.inList = false;
    this.due = "first"; // inside the list: "first" element or end, "next" element, "comma" or end
  }

  /** Uses as many of the bytes as form whole tokens and whole records; answers how many. */
  feed(bytes, offset, isLast) {
    let at = 0;
    while (at < bytes.length) {
      const used = this.inList ? this.inside(bytes, at, offset) : this.outside(bytes, at);
      if (used === 0) break;
      at += used;
    }
    if (isLast && at < bytes.length) {
      this.keep(bytes, at, bytes.length); // an unfinished token: not JSON, as the strict reader will say
      return bytes.length;
    }
    return at;
  }

  outside(bytes, at) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      const end = stringEnd(bytes, at);
      if (end === -1) return 0;
      if (this.depth === 1) this.key = bytes.subarray(at + 1, end - 1);
      this.keep(bytes, at, end);
      return end - at;
    }
    this.keep(bytes, at, at + 1);
    if (byte === OPEN) this.depth++;
    else if (byte === CLOSE || byte === CLOSE_LIST) this.depth--;
    else if (byte === OPEN_LIST) {
      if (this.depth === 1 && this.key !== null && isRecords(this.key)) {
        this.inList = true;
        this.due = "first";
        this.lists++;
      } else this.depth++;
    }
    if (byte === COMMA) this.key = null;
    return 1;
  }

  inside(bytes, at, offset) {
    const byte = bytes[at];
    if (byte === 32 || byte === 9 || byte === LF || byte === 13) return 1;
    if (byte === CLOSE_LIST && this.due !== "next") {
      this.inList = false;
      this.key = null;
      this.keep(bytes, at, at + 1);
      return 1;
    }
    if (byte === COMMA && this.due === "comma") {
      this.due = "next";
      return 1;
    }
    if (byte !== OPEN || this.due === "comma") throw new Finding("its records are not a list of objects");
    const end = objectEnd(bytes, at);
    if (end === -1) return 0;
    this.due = "comma";
    this.onRecord(bytes.subarray(at, end), offset + at, offset + end);
    return end - at;
  }

  keep(bytes, from, to) {
    const length = this.restLength + to - from;
    if (length > MAX_REST_BYTES) throw new Finding("is too large outside its records to be a bundle");
    if (length > this.rest.length) {
      const larger = new Uint8Array(Math.max(length, this.rest.length * 2));
      larger.set(this.rest.subarray(0, this.restLength));
      this.rest = larger;
    }
    this.rest.set(bytes.subarray(from, to), this.restLength);
    this.restLength = length;
  }
}

/** Feeds a whole file through a RecordCutter. */
export async function cutRecords(blob, onRecord, onProgress = () => {}) {
  const cutter = new RecordCutter(onRecord);
  await walk(blob, onProgress, (bytes, offset, isLast) => cutter.feed(bytes, offset, isLast));
  if (cutter.inList) throw new Finding("ends in the middle of its records");
  return { rest: cutter.rest.subarray(0, cutter.restLength), lists: cutter.lists };
}

function isRecords(key) {
  return key.length === 7 && String.fromCharCode(...key) === "records";
}

/** Just after the string that begins at `at`, or -1 where it does not end in these bytes. */
function stringEnd(bytes, at) {
  for (let quote = bytes.indexOf(QUOTE, at + 1); quote !== -1; quote = bytes.indexOf(QUOTE, quote + 1)) {
    let slashes = 0;
    while (bytes[quote - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return quote + 1;
  }
  return -1;
}

/** Just after the object that begins at `at`, or -1 where it does not end in these bytes. */
function objectEnd(bytes, at) {
  let depth = 0;
  for (let here = at; here < bytes.length; here++) {
    const byte = bytes[here];
    if (byte === QUOTE) {
      const end = stringEnd(bytes, here);
      if (end === -1) return -1;
      here = end - 1;
    } else if (byte === OPEN) depth++;
    else if (byte === CLOSE && --depth === 0) return here + 1;
  }
  return -1;
}
