// A ledger file: every line checked until the first bad one, and all of them indexed, so that the place where it
// breaks can be looked at.

import { Chain } from "./chain.js";
import { Finding, locate } from "./finding.js";
import { decodeText } from "./json.js";
import { Leaves } from "./merkle.js";
import { readRecord } from "./record.js";
import { Extents, eachLine } from "./scan.js";

/** `{kind, blob, extents, leaves, count, head, problem, events}`; `count` is how many records hold. */
export async function readLedger(blob, onProgress) {
  const chain = new Chain();
  const ledger = {
    kind: "ledger",
    blob,
    extents: new Extents(),
    leaves: new Leaves(),
    events: new Map(),
    problem: null,
  };
  const check = (bytes, hasEnd) => {
    const line = chain.count + 1;
    if (!hasEnd) throw new Finding("the last line is torn (it has no line end)", `line ${line}`, chain.count);
    const { record, leaf } = locate(`record ${chain.count} (line ${line})`, chain.count, () => {
      const read = readLine(bytes);
      chain.link(read.record);
      return read;
    });
    ledger.leaves.push(leaf);
    ledger.events.set(record.event, (ledger.events.get(record.event) ?? 0) + 1);
  };
  await eachLine(
    blob,
    (bytes, start, end, hasEnd) => {
      ledger.extents.push(start, end);
      if (ledger.problem !== null) return;
      try {
        check(bytes, hasEnd);
      } catch (error) {
        if (!(error instanceof Finding)) throw error;
        ledger.problem = error;
      }
    },
    onProgress,
  );
  if (ledger.extents.count === 0)
    ledger.problem = new Finding("the file is empty: there is nothing to verify");
  return Object.assign(ledger, { count: chain.count, head: chain.head });
}

function readLine(bytes) {
  if (bytes.length === 0) throw new Finding("the line is empty");
  if (bytes[bytes.length - 1] === 13)
    throw new Finding("the line ends in CR LF: the file was converted on the way");
  const read = readRecord(decodeText(bytes));
  if (!read.isCanonical) throw new Finding("is not in canonical form");
  return read;
}
