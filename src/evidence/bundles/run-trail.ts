/**
 * Verifies the records of one run inside a bundle: each record's hash, its number in the run, and its link to a
 * neighbor.
 */
import { hash as digest } from "node:crypto";
import { type PausableWork, runAtOnce } from "../../kernel/pausable-work.ts";
import { type RecordFacts, readRecordText } from "../../ledger/read-record.ts";
import { GENESIS_HASH } from "../../ledger/record.ts";
import { BROKEN_LINK } from "../chain/chunk.ts";
import type { LineFile } from "../chain/line-file.ts";
import type { BundleFile } from "./bundle-file.ts";

export interface RunTrail {
  entries: { seq: number; leaf: string }[];
  last_hash: string;
  problem: string | undefined;
  /** Whether a line could not be parsed, so the bundle may have another layout. */
  unreadable: boolean;
}

const STEP = 1_048_576;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** Placeholder for a line that is not a record. The reader rejects it as unreadable. */
const NOT_JSON = "";

/**
 * Text of each record in order. Lines of the file lose the comma at their end. `wanted` leaves out parts of the file.
 */
export function* recordTexts(
  file: LineFile,
  bundle: BundleFile,
  wanted: (bytes: Buffer) => boolean = () => true,
): Generator<string> {
  if ("lines" in bundle) {
    yield* bundle.lines;
    return;
  }
  const { region } = bundle;
  for (let from = region.start; from < region.end; from += STEP) {
    const { bytes, length, is_end } = file.lines(region, from, Math.min(from + STEP, region.end));
    if (!wanted(bytes.subarray(0, length))) continue;
    let text: string;
    try {
      text = UTF8.decode(bytes.subarray(0, length));
    } catch {
      yield NOT_JSON;
      return;
    }
    const lines = text.split("\n").slice(0, -1);
    for (const [i, line] of lines.entries()) {
      const isLast = is_end && i === lines.length - 1;
      yield isLast ? line : (/^(.*),[ \t\r]*$/s.exec(line)?.[1] ?? NOT_JSON);
    }
  }
}

export function readTrail(texts: Iterable<string>, run_id: string): RunTrail {
  return runAtOnce(readingTrail(texts, run_id));
}

/** Like `readTrail`, with a pause after each record. */
export function* readingTrail(texts: Iterable<string>, run_id: string): PausableWork<RunTrail> {
  const trail: RunTrail = { entries: [], last_hash: GENESIS_HASH, problem: undefined, unreadable: false };
  let last: RecordFacts | undefined;
  for (const text of texts) {
    const facts = readRecordText(text);
    if (typeof facts === "string") {
      return {
        ...trail,
        problem: `record ${trail.entries.length} of the bundle: ${facts}`,
        unreadable: true,
      };
    }
    const problem = placeProblem(facts, last, run_id, trail.entries.length);
    if (problem !== undefined) return { ...trail, problem: `record ${facts.seq}: ${problem}` };
    trail.entries.push({ seq: facts.seq, leaf: digest("sha256", `\0${facts.body}`, "hex") });
    last = facts;
    trail.last_hash = facts.hash;
    yield;
  }
  return trail;
}

function placeProblem(
  facts: RecordFacts,
  last: RecordFacts | undefined,
  run_id: string,
  due: number,
): string | undefined {
  if (digest("sha256", facts.body, "hex") !== facts.hash)
    return "its hash does not match what it says: it was changed";
  if (facts.run_id !== run_id) return "it belongs to another run, or to none";
  if (facts.seq === 0 && facts.prev !== GENESIS_HASH)
    return "its prev is not 64 zeros, though it is the first record";
  if (last !== undefined) {
    if (facts.seq <= last.seq) return "it is repeated or out of order";
    if (facts.seq === last.seq + 1 && facts.prev !== last.hash) return BROKEN_LINK;
  }
  if (facts.run_seq === due) return undefined;
  return `its run_seq is ${facts.run_seq} where ${due} was due: a record of the run is missing`;
}
