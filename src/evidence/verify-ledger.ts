/**
 * Verifies an entire ledger: hashes, links, the numbering of the ledger and of each run, and optionally the tree. It never
 * writes, its memory use does not depend on the number of records, and it may run while a server appends.
 */
import { setTimeout as pause } from "node:timers/promises";
import { SvcError } from "../kernel/errors.ts";
import type { LedgerHead } from "../ledger/record.ts";
import { type CheckOptions, ChunkVerifier, toLineChunk } from "./chain/chunk.ts";
import { type FirstBad, LedgerJoin, type LedgerMoment } from "./chain/join.ts";
import { LineFile, type LineRegion } from "./chain/line-file.ts";
import { allCores, type CheckTask, checkAndJoin, openCheckers } from "./chain/pool.ts";
import { newRunSeed } from "./chain/run-numbering.ts";

/** The part of a store that verification needs: any source that pages through lines. */
export interface LedgerReader {
  head(): Promise<LedgerHead>;
  records(query: { from?: number; to?: number; limit: number }): Promise<string[]>;
}

export interface LedgerCheck {
  /** Number of valid records: all, or those before the first bad one. */
  records: number;
  /** Hash of the last record; meaningful only if no record is bad. */
  head: string;
  first_bad: FirstBad | null;
  /** Root of the tree over all records; null unless requested. */
  root: string | null;
  /** Head and root at each requested size that the ledger has reached. */
  moments: ReadonlyMap<number, LedgerMoment>;
  /** Number of threads used; 0 for the current thread only. */
  threads: number;
}

export interface VerifyOptions {
  tree?: boolean;
  sizes?: Iterable<number>;
  /** Number of threads. Default: 0, or one per core for a large ledger. */
  threads?: number | undefined;
}

/** Bytes per task of a thread. */
const CHUNK_BYTES = 2 * 1_048_576;
/** Below this size, starting threads takes longer than the work. */
const PARALLEL_BYTES = 48 * 1_048_576;
const PARALLEL_RECORDS = 100_000;
const PAGE = 2_048;
/** Time for another process to finish the line that it is writing. */
const LINE_WAIT_MS = 50;
const LINE_WAITS = 6;

export async function verifyLedgerFile(path: string, options: VerifyOptions = {}): Promise<LedgerCheck> {
  const file = new LineFile(path);
  try {
    const size = file.size;
    const region: LineRegion = { start: 0, end: file.lastLineEnd(size) };
    const torn = size > region.end && (await staysTorn(file, region.end)) ? size - region.end : 0;
    const check = await checkFileRegion(path, region, options, false);
    if (check.first_bad !== null || torn === 0) return check;
    const problem = `the last line is torn: ${torn} bytes without a line end, as an interrupted write leaves them`;
    return { ...check, first_bad: { seq: check.records, problem } };
  } finally {
    file.close();
  }
}

/** Verifies a region of a file, as a ledger or as the records of a whole-ledger bundle. */
export async function checkFileRegion(
  path: string,
  region: LineRegion,
  options: VerifyOptions,
  in_bundle: boolean,
): Promise<LedgerCheck & { unreadable: boolean }> {
  const threads = options.threads ?? (region.end - region.start >= PARALLEL_BYTES ? allCores() : 0);
  const { join, check } = prepare(options, in_bundle);
  const checkers = openCheckers({ path, options: check }, threads);
  try {
    await checkAndJoin(ranges(region), checkers, join);
  } finally {
    await checkers.close();
  }
  return { ...result(join, threads), unreadable: join.isUnreadable };
}

export async function verifyStoreLedger(
  store: LedgerReader,
  options: VerifyOptions = {},
): Promise<LedgerCheck> {
  const { records, hash } = await store.head();
  const threads = options.threads ?? (records >= PARALLEL_RECORDS ? allCores() : 0);
  const { join, check } = prepare(options, false);
  const checkers = openCheckers({ path: null, options: check }, threads);
  try {
    await checkAndJoin(storeTasks(store, 0, records), checkers, join);
  } finally {
    await checkers.close();
  }
  if (join.bad === null && join.records !== records) {
    join.fail(
      join.records,
      `the store counts ${records} records, but this one and those behind it are not there`,
    );
  } else if (join.bad === null && join.head !== hash) {
    join.fail(records - 1, "its hash is not the head that the store keeps");
  }
  return result(join, threads);
}

/**
 * Verifies the last lines of a ledger in isolation. Their link to earlier records, and the earlier numbering of their
 * runs, cannot be checked.
 */
export function checkTail(lines: readonly string[], from: number): { bad: FirstBad | null; head: string } {
  const seed = newRunSeed();
  const checker = new ChunkVerifier({ seed, tree: null, in_bundle: false });
  const facts = checker.check(toLineChunk(lines.map((line) => `${line}\n`).join("")));
  const join =
    from === 0
      ? new LedgerJoin({ seed, tree: false })
      : new LedgerJoin({ seed: null, tree: false }, { records: from, head: facts.first?.prev ?? "" });
  join.add(facts);
  return join;
}

/** The records from one position to another, page by page. */
export async function* storeTasks(store: LedgerReader, from: number, to: number): AsyncGenerator<CheckTask> {
  let next = from;
  while (next < to) {
    const lines = await readablePage(store, next, to - 1);
    if (lines.length === 0) return;
    const { bytes, length } = toLineChunk(`${lines.join("\n")}\n`);
    next += lines.length;
    yield { kind: "lines", bytes: bytes.buffer as ArrayBuffer, length };
  }
}

/** The next records, up to the first missing one. */
async function readablePage(store: LedgerReader, from: number, to: number): Promise<string[]> {
  try {
    return await store.records({ from, to, limit: PAGE });
  } catch (error) {
    if (!(error instanceof SvcError && error.code === "corrupt")) throw error;
  }
  const lines: string[] = [];
  try {
    for (let seq = from; seq <= to && lines.length < PAGE; seq++)
      lines.push(...(await store.records({ from: seq, to: seq, limit: 1 })));
  } catch (error) {
    if (!(error instanceof SvcError && error.code === "corrupt")) throw error;
  }
  return lines;
}

function prepare(options: VerifyOptions, in_bundle: boolean): { join: LedgerJoin; check: CheckOptions } {
  const seed = newRunSeed();
  const sizes = [...new Set(options.sizes)].sort((a, b) => a - b);
  const tree = options.tree === true || sizes.length > 0;
  return {
    join: new LedgerJoin({ seed, tree, sizes }),
    check: { seed, tree: tree ? { cuts: sizes, largest: Number.POSITIVE_INFINITY } : null, in_bundle },
  };
}

function result(join: LedgerJoin, threads: number): LedgerCheck {
  const { records, head, bad, moments } = join;
  return { records: bad?.seq ?? records, head, first_bad: bad, root: join.root(), moments, threads };
}

function* ranges(region: LineRegion): Generator<CheckTask> {
  for (let from = region.start; from < region.end; from += CHUNK_BYTES) {
    yield { kind: "range", region, from, to: Math.min(from + CHUNK_BYTES, region.end) };
  }
}

/** Whether the bytes after the last line break are a torn line, not one that is being written. */
async function staysTorn(file: LineFile, end: number): Promise<boolean> {
  for (let i = 0; i < LINE_WAITS; i++) {
    await pause(LINE_WAIT_MS);
    const { size } = file;
    if (size <= end || file.lastLineEnd(size, end) > end) return false;
  }
  return true;
}
