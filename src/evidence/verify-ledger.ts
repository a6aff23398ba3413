/**
 * Verifying a whole ledger: every hash, every link, the numbering of the ledger and of each run, and the tree
 * on request. It reads and never writes, in memory that does not grow with the records, and may run beside
 * a server that appends.
 */
import { setTimeout as pause } from "node:timers/promises";
import { SvcError } from "../kernel/errors.ts";
import type { Head } from "../ledger/record.ts";
import { asLines, type CheckOptions, StretchChecker } from "./chain/chunk.ts";
import { type FirstBad, LedgerJoin, type LedgerMoment } from "./chain/join.ts";
import { allCores, type CheckTask, checkAndJoin, openCheckers } from "./chain/pool.ts";
import { LineFile, type Region } from "./chain/region.ts";
import { newRunSeed } from "./chain/runs.ts";

/** What verifying asks of a store; anything that can page through lines will do. */
export interface LedgerReader {
  head(): Promise<Head>;
  records(query: { from?: number; to?: number; limit: number }): Promise<string[]>;
}

export interface LedgerCheck {
  /** How many records are sound: all of them, or those before the first bad one. */
  records: number;
  /** The hash of the last record; meaningful where nothing is bad. */
  head: string;
  first_bad: FirstBad | null;
  /** The root of the tree over all records; null unless asked for. */
  root: string | null;
  /** Head and root at each of the sizes asked for that the ledger reached. */
  moments: ReadonlyMap<number, LedgerMoment>;
  /** How many threads did the work; 0 where it was done here. */
  threads: number;
}

export interface VerifyOptions {
  tree?: boolean;
  sizes?: Iterable<number>;
  /** How many threads; by default none, or one for each core where the ledger is large. */
  threads?: number | undefined;
}

/** What one thread takes at a time. */
const CHUNK_BYTES = 2 * 1_048_576;
/** Below this, starting threads takes longer than the work. */
const PARALLEL_BYTES = 48 * 1_048_576;
const PARALLEL_RECORDS = 100_000;
const PAGE = 2_048;
/** How long a line that another process is writing may take to be finished. */
const LINE_WAIT_MS = 50;
const LINE_WAITS = 6;

export async function verifyLedgerFile(path: string, options: VerifyOptions = {}): Promise<LedgerCheck> {
  const file = new LineFile(path);
  try {
    const size = file.size;
    const region: Region = { start: 0, end: file.lastLineEnd(size) };
    const torn = size > region.end && (await staysTorn(file, region.end)) ? size - region.end : 0;
    const check = await checkFileRegion(path, region, options, false);
    if (check.first_bad !== null || torn === 0) return check;
    const problem = `the last line is torn: ${torn} bytes without a line end, as an interrupted write leaves them`;
    return { ...check, first_bad: { seq: check.records, problem } };
  } finally {
    file.close();
  }
}

/** The lines of a region of a file, as a ledger or as the records of a whole-ledger bundle. */
export async function checkFileRegion(
  path: string,
  region: Region,
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

/** The last lines of a ledger by themselves: all but what they link to, and how far their runs had come before. */
export function checkTail(lines: readonly string[], from: number): { bad: FirstBad | null; head: string } {
  const seed = newRunSeed();
  const checker = new StretchChecker({ seed, tree: null, in_bundle: false });
  const facts = checker.check(asLines(lines.map((line) => `${line}\n`).join("")));
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
    const { bytes, length } = asLines(`${lines.join("\n")}\n`);
    next += lines.length;
    yield { kind: "lines", bytes: bytes.buffer as ArrayBuffer, length };
  }
}

/** The next records, up to the first that is not there. */
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

function* ranges(region: Region): Generator<CheckTask> {
  for (let from = region.start; from < region.end; from += CHUNK_BYTES) {
    yield { kind: "range", region, from, to: Math.min(from + CHUNK_BYTES, region.end) };
  }
}

/** Whether what stands behind the last line break is really all that comes, and no line being written. */
async function staysTorn(file: LineFile, end: number): Promise<boolean> {
  for (let i = 0; i < LINE_WAITS; i++) {
    await pause(LINE_WAIT_MS);
    const { size } = file;
    if (size <= end || file.lastLineEnd(size, end) > end) return false;
  }
  return true;
}
