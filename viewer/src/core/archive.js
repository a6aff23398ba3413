// The records of an opened file, read back on demand from the file itself: a page of rows, or all that match a query.

import { decodeText } from "./json.js";

const SCAN_BYTES = 4 << 20;

export class Archive {
  constructor(blob, extents) {
    this.blob = blob;
    this.extents = extents;
  }

  get count() {
    return this.extents.count;
  }

  /** The record at a position as `{position, text, record}`; `record` is null where the text is no JSON object. */
  async read(position) {
    const { starts, ends } = this.extents;
    const bytes = new Uint8Array(await this.blob.slice(starts[position], ends[position]).arrayBuffer());
    return toRow(position, bytes);
  }

  /** Calls `visit(row)` for every record in order, a chunk of the file at a time; stops when `onProgress` says false. */
  async scan(visit, onProgress = () => true) {
    const { starts, ends } = this.extents;
    let from = 0;
    while (from < this.count) {
      let to = from;
      while (to < this.count && ends[to] - starts[from] <= SCAN_BYTES) to++;
      to = Math.max(to, from + 1);
      const bytes = new Uint8Array(await this.blob.slice(starts[from], ends[to - 1]).arrayBuffer());
      for (let at = from; at < to; at++) {
        visit(toRow(at, bytes.subarray(starts[at] - starts[from], ends[at] - starts[from])));
      }
      from = to;
      if (onProgress(from, this.count) === false) return false;
    }
    return true;
  }
}

function toRow(position, bytes) {
  let text;
  try {
    text = decodeText(bytes);
  } catch {
    text = new TextDecoder().decode(bytes);
  }
  try {
    const record = JSON.parse(text);
    return { position, text, record: record !== null && typeof record === "object" ? record : null };
  } catch {
    return { position, text, record: null };
  }
}

/**
 * A query as a test of a row. Words must all be found; `field:word` looks in that field only, and a number
 * must be that number. Case does not matter.
 */
export function compileQuery({ text = "", event = "" }) {
  const terms = text
    .toLowerCase()
    .split(/\s+/)
    .filter((term) => term !== "")
    .map((term) => {
      const colon = term.indexOf(":");
      return colon > 0
        ? { field: term.slice(0, colon), word: term.slice(colon + 1) }
        : { field: null, word: term };
    });
  return ({ text: raw, record }) => {
    if (event !== "" && record?.event !== event) return false;
    return terms.every(({ field, word }) => {
      const value = field === null ? undefined : record?.[field];
      if (typeof value === "number") return String(value) === word;
      if (field !== null && value !== undefined) return String(value).toLowerCase().includes(word);
      // A term with a colon that names no field of this record may still be text, such as a time or an address.
      return raw.toLowerCase().includes(field === null ? word : `${field}:${word}`);
    });
  };
}
