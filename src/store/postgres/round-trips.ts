/**
 * The round trips of a batch: lock the head and fetch documents; write, move the head and commit. If other processes
 * also write, the documents are fetched before the lock, and the first round trip only checks whether they have
 * changed. Each round trip is one pipeline of statements.
 */
import type { QueryResult } from "pg";
import type { DocKey } from "../../govern/port/store.ts";
import {
  SEQ_FIELDS,
  TABLE_INDEX,
  type TableDocs,
  type TableName,
  tenantOfDoc,
} from "../../govern/port/tables.ts";
import { SvcError } from "../../kernel/errors.ts";
import { EMPTY_HEAD, type LedgerHead, type LedgerRecord } from "../../ledger/record.ts";
import type { DocChange, UnitBatch } from "../batch.ts";
import { docText } from "../doc-text.ts";
import { toKeyText } from "../key-text.ts";
import { assertHasAcknowledged } from "./acknowledged-head.ts";
import { notConfirmed, outcomeUnknown } from "./connect/failures.ts";
import type { PgSession } from "./connect/session.ts";
import { bigintArray, doubleArray, textArray } from "./encode.ts";
import type { FetchedDocs } from "./prefetch.ts";
import * as sql from "./statements.ts";

export const SLOT_MS = 600_000;
/** Document characters per statement. A message to PostgreSQL must stay far below a gigabyte. */
const CHUNK_CHARS = 16_000_000;

/** The head under the lock. */
export interface LockedHead {
  head: LedgerHead;
  events: Record<string, number>;
  xid: string;
}

interface HeadRow {
  records: string;
  hash: string;
  events: Record<string, number>;
  xid: string;
  acknowledged: string | null;
}

/**
 * Locks the head, and runs `read` in the same round trip. Rejects a database that lacks the newest acknowledged record.
 */
export async function lockHeadAndRead(
  session: PgSession,
  acknowledged: LedgerHead,
  read: () => Promise<void>,
): Promise<LockedHead> {
  const [, locked] = await session.together(() =>
    Promise.all([session.begin(sql.BEGIN_SQL), lockHead(session, acknowledged), read()]),
  );
  const row = locked.rows[0];
  if (row === undefined) throw new SvcError("corrupt", "ledger corrupt: the head row is missing");
  const head = { records: Number(row.records), hash: row.hash };
  assertHasAcknowledged(acknowledged, head.records, row.acknowledged);
  return { head, events: row.events, xid: row.xid };
}

/** Locks the head, and reads the hash at the position of the newest acknowledged record. */
export function lockHead(
  session: PgSession,
  acknowledged: LedgerHead = EMPTY_HEAD,
): Promise<QueryResult<HeadRow>> {
  return session.client.query<HeadRow>({
    ...session.prepared(sql.LOCK_HEAD_SQL),
    values: [acknowledged.records - 1],
  });
}

export async function fetchFacts(
  session: PgSession,
  keys: readonly DocKey[],
  facts: FetchedDocs,
): Promise<void> {
  if (keys.length === 0) return;
  const { rows } = await session.client.query<[string, string]>({
    ...session.prepared(sql.FETCH_DOCS_SQL),
    values: keyValues(keys),
    rowMode: "array",
  });
  const json: (string | undefined)[] = new Array(keys.length);
  for (const [at, doc] of rows) json[Number(at) - 1] = doc;
  facts.add(keys, json);
}

/** Fetches documents before the lock, with versions that `recheck` compares under the lock. */
export async function fetchVersions(
  session: PgSession,
  keys: readonly DocKey[],
  facts: FetchedDocs,
): Promise<void> {
  if (keys.length === 0) return;
  const { rows } = await session.client.query<[string, string, string]>({
    ...session.prepared(sql.FETCH_VERSIONS_SQL),
    values: keyValues(keys),
    rowMode: "array",
  });
  const json: (string | undefined)[] = new Array(keys.length);
  const versions: (string | undefined)[] = new Array(keys.length);
  for (const [at, doc, version] of rows) {
    json[Number(at) - 1] = doc;
    versions[Number(at) - 1] = version;
  }
  facts.addVersions(keys, json, versions);
}

/** Replaces outdated documents under the lock, and returns their keys. */
export async function recheckVersions(session: PgSession, facts: FetchedDocs): Promise<DocKey[]> {
  const { keys, versions } = facts;
  if (keys.length === 0) return [];
  const { rows } = await session.client.query<[string, string | null]>({
    ...session.prepared(sql.CHANGED_DOCS_SQL),
    values: [...keyValues(keys), textArray(versions)],
    rowMode: "array",
  });
  const changed = rows.map(([at]) => keys[Number(at) - 1]!);
  facts.add(
    changed,
    rows.map(([, doc]) => doc ?? undefined),
  );
  return changed;
}

const keyValues = (keys: readonly DocKey[]): Buffer[] => [
  textArray(keys.map(([table]) => table)),
  textArray(keys.map(([, key]) => toKeyText(key))),
];

/** Identifies a commit, to search for it if the response to COMMIT is lost. */
export interface PendingCommit {
  last: LedgerRecord | undefined;
  xid: string;
  /** The timeline in which the transaction id is valid. */
  timeline: string | null;
}

/** Returns the server's objection, if any. Rejects without a response from the server. */
export async function writeAndCommit(
  session: PgSession,
  statements: readonly PreparedQuery[],
): Promise<SvcError | undefined> {
  session.warning = undefined;
  const answers = await session.together(() =>
    Promise.all([
      ...statements.map((statement) => session.client.query(session.prepared(statement))),
      session.client.query("COMMIT"),
    ]),
  );
  // A failed transaction answers COMMIT with ROLLBACK. A warning means that the server did not wait for a standby.
  if (answers.at(-1)?.command !== "COMMIT")
    return new SvcError("unavailable", "ledger unavailable: rolled back");
  return session.warning === undefined ? undefined : notConfirmed();
}

/**
 * Commits a transaction without changes. The results of its units depend on the documents they read, so it ends like
 * one with writes: after everything that it has read is on disk and on the standby.
 */
export async function commitReadOnly(session: PgSession): Promise<void> {
  session.warning = undefined;
  await session.client.query("COMMIT");
  if (session.warning !== undefined) throw notConfirmed();
}

export interface PreparedQuery {
  name: string;
  text: string;
  values: (Buffer | string | number)[];
}

/** Tells whether the database has a document, or undefined if the batch has not read it. */
export type KnowsDoc = (key: DocKey) => boolean | undefined;

/** Builds the statements for all changes of a batch. Throws on a value that JSON or an array cannot represent. */
export function batchStatements(batch: UnitBatch, locked: LockedHead, has: KnowsDoc): PreparedQuery[] {
  return [...documents([...batch.changes], has), ...recordsOf(batch, locked)];
}

const hasPlaces = ({ table }: DocChange): boolean => SEQ_FIELDS[table] !== undefined;

/**
 * Builds the statements that do not depend on the position: documents of any size, except those that contain positions.
 */
export function preSealStatements(batch: UnitBatch, has: KnowsDoc): PreparedQuery[] {
  return documents(
    [...batch.changes].filter((change) => !hasPlaces(change)),
    has,
  );
}

/** Builds the other statements after sealing. They grow only with the number of records. */
export function postSealStatements(batch: UnitBatch, locked: LockedHead, has: KnowsDoc): PreparedQuery[] {
  return [...documents([...batch.changes].filter(hasPlaces), has), ...recordsOf(batch, locked)];
}

function documents(changes: readonly DocChange[], has: KnowsDoc): PreparedQuery[] {
  const { removed, ...puts } = split(changes, has);
  const statements = [
    ...writes(sql.ADD_DOCS_SQL, puts.added),
    ...writes(sql.CHANGE_DOCS_SQL, puts.changed),
    ...writes(sql.PUT_DOCS_SQL, puts.unknown),
  ];
  if (removed.length > 0) {
    const values = keyValues(removed.map(({ table, key }) => [table, key]));
    statements.push({ ...sql.REMOVE_DOCS_SQL, values });
  }
  return statements;
}

function recordsOf(batch: UnitBatch, { head, events }: LockedHead): PreparedQuery[] {
  const advance = { ...sql.ADVANCE_HEAD_SQL, values: advanceValues(batch, events) };
  if (batch.records.length === 0) return [advance];
  return [{ ...sql.APPEND_RECORDS_SQL, values: appendValues(batch, head) }, advance];
}

function appendValues({ records, lines }: UnitBatch, head: LedgerHead): (Buffer | number)[] {
  const text = (name: "run_id" | "event" | "actor" | "tool"): Buffer =>
    textArray(records.map((record) => (record[name] === undefined ? undefined : toKeyText(record[name]))));
  return [
    head.records,
    textArray(records.map(({ prev }) => prev)),
    textArray(records.map(({ hash }) => hash)),
    textArray(lines),
    text("run_id"),
    text("event"),
    text("actor"),
    text("tool"),
    bigintArray(records.map(({ ts_ms }) => ts_ms)),
  ];
}

interface Put {
  table: TableName;
  key: string;
  doc: TableDocs[TableName];
  json: string;
}

interface SplitChanges {
  added: Put[];
  changed: Put[];
  unknown: Put[];
  removed: DocChange[];
}

function split(changes: Iterable<DocChange>, has: KnowsDoc): SplitChanges {
  const found: SplitChanges = { added: [], changed: [], unknown: [], removed: [] };
  for (const change of changes) {
    const { table, key, doc } = change;
    if (doc === undefined) {
      found.removed.push(change);
      continue;
    }
    const known = has([table, key]);
    const puts = known === undefined ? found.unknown : known ? found.changed : found.added;
    puts.push({ table, key, doc, json: docText(table, doc) });
  }
  return found;
}

const writes = (statement: { name: string; text: string }, puts: readonly Put[]): PreparedQuery[] =>
  [...chunks(puts)].map((chunk) => ({ ...statement, values: putValues(chunk) }));

function* chunks(puts: readonly Put[]): Generator<Put[]> {
  let chunk: Put[] = [];
  let chars = 0;
  for (const put of puts) {
    chunk.push(put);
    chars += put.json.length;
    if (chars < CHUNK_CHARS) continue;
    yield chunk;
    chunk = [];
    chars = 0;
  }
  if (chunk.length > 0) yield chunk;
}

const ofTenant = (tenant: string | null): string | undefined =>
  tenant === null ? undefined : toKeyText(tenant);

function putValues(puts: readonly Put[]): Buffer[] {
  const index = puts.map(({ table, doc }) =>
    (TABLE_INDEX[table] as (doc: unknown) => ReturnType<(typeof TABLE_INDEX)["runs"]>)(doc),
  );
  return [
    textArray(puts.map(({ table }) => table)),
    textArray(puts.map(({ key }) => toKeyText(key))),
    textArray(index.map(({ owner }) => toKeyText(owner))),
    doubleArray(index.map(({ sort }) => sort)),
    textArray(index.map(({ tag }) => toKeyText(tag))),
    textArray(puts.map(({ json }) => json)),
    textArray(puts.map(({ table, doc }) => ofTenant(tenantOfDoc(table, doc)))),
  ];
}

function advanceValues(batch: UnitBatch, before: Record<string, number>): (Buffer | string | number)[] {
  const events = { ...before };
  const slots = new Map<number, { first: number; last: number }>();
  for (const { event, ts_ms, seq } of batch.records) {
    events[event] = (events[event] ?? 0) + 1;
    const slot = Math.floor(ts_ms / SLOT_MS);
    const seen = slots.get(slot);
    if (seen === undefined) slots.set(slot, { first: seq, last: seq });
    else seen.last = seq;
  }
  const range = [...slots.values()];
  return [
    batch.head.records,
    batch.head.hash,
    JSON.stringify(events),
    bigintArray([...slots.keys()]),
    bigintArray(range.map(({ first }) => first)),
    bigintArray(range.map(({ last }) => last)),
  ];
}

/** Locks the head like a batch and changes nothing: checks that a batch could be written now. */
export async function testHeadLock(session: PgSession): Promise<void> {
  await session.together(() =>
    Promise.all([session.begin(sql.BEGIN_SQL), lockHead(session), session.client.query("ROLLBACK")]),
  );
}

/**
 * Checks whether a batch without a response to its COMMIT is committed. The head lock is a barrier: the lost
 * transaction holds it until it has ended, so a "no" is final. A record is found by position and hash. A batch without
 * records is found by its transaction id, which only the original server can know: a server promoted since may have
 * reused that id. A "yes" waits for the standby: a server that crashed before the standby had the record finds it again.
 */
export async function isCommitted(
  session: PgSession,
  { last, xid, timeline }: PendingCommit,
): Promise<boolean> {
  const { client } = session;
  if (last === undefined && session.timeline !== timeline) throw outcomeUnknown();
  const question =
    last === undefined
      ? { ...sql.FIND_TRANSACTION_SQL, values: [xid] }
      : { ...sql.FIND_RECORD_SQL, values: [last.seq, last.hash] };
  session.warning = undefined;
  const [, , answer] = await session.together(() =>
    Promise.all([
      session.begin(sql.BEGIN_SQL),
      lockHead(session),
      client.query<{ yes: boolean | null }>(session.prepared(question)),
      client.query("COMMIT"),
    ]),
  );
  const hasIt = answer.rows[0]?.yes === true;
  if (hasIt && session.warning !== undefined) throw notConfirmed();
  return hasIt;
}
