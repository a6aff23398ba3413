/**
 * A batch as round trips: lock the head and fetch the facts; write, move the head and commit. Where others take the
 * head, too, the facts are fetched before it, and the first of the two only looks whether they have changed. Each is
 * sent as one bundle without waiting for the answers in between.
 */
import type { QueryResult } from "pg";
import { SvcError } from "../../kernel/errors.ts";
import { EMPTY_HEAD, type Head, type LedgerRecord } from "../../ledger/record.ts";
import type { Key } from "../../port/store.ts";
import { INDEX, PLACES, type TableName, type Tables, tenantOfDoc } from "../../port/tables.ts";
import type { Batch, DocChange } from "../batch.ts";
import { docText } from "../doc-text.ts";
import { toText } from "../key-text.ts";
import { bigintArray, doubleArray, textArray } from "./encode.ts";
import type { FetchedDocs } from "./facts.ts";
import { notConfirmed, outcomeUnknown } from "./failures.ts";
import type { PgSession } from "./session.ts";
import * as sql from "./statements.ts";
import { assertNotSetBack } from "./told.ts";

export const SLOT_MS = 600_000;
/** Documents of one statement, in characters: a message to PostgreSQL must stay far below a gigabyte. */
const CHUNK_CHARS = 16_000_000;

/** The head as it stands under the lock. */
export interface Locked {
  head: Head;
  events: Record<string, number>;
  xid: string;
}

interface HeadRow {
  records: string;
  hash: string;
  events: Record<string, number>;
  xid: string;
  told: string | null;
}

/**
 * Takes the head, and with it what `read` asks for in the same round trip. Refuses a database that does not have what
 * has been told of.
 */
export async function begin(session: PgSession, told: Head, read: () => Promise<void>): Promise<Locked> {
  const [, locked] = await session.together(() =>
    Promise.all([session.begin(sql.BEGIN), lock(session, told), read()]),
  );
  const row = locked.rows[0];
  if (row === undefined) throw new SvcError("corrupt", "ledger corrupt: the head row is missing");
  const head = { records: Number(row.records), hash: row.hash };
  assertNotSetBack(told, head.records, row.told);
  return { head, events: row.events, xid: row.xid };
}

/** Takes the head, and looks what is in the last place that was told of. */
export function lock(session: PgSession, told: Head = EMPTY_HEAD): Promise<QueryResult<HeadRow>> {
  return session.client.query<HeadRow>({ ...session.prepared(sql.LOCK), values: [told.records - 1] });
}

export async function fetchFacts(
  session: PgSession,
  keys: readonly Key[],
  facts: FetchedDocs,
): Promise<void> {
  if (keys.length === 0) return;
  const { rows } = await session.client.query<[string, string]>({
    ...session.prepared(sql.FETCH),
    values: keyValues(keys),
    rowMode: "array",
  });
  const json: (string | undefined)[] = new Array(keys.length);
  for (const [at, doc] of rows) json[Number(at) - 1] = doc;
  facts.add(keys, json);
}

/** Facts before the head is taken; `recheck` looks at them again when it is. */
export async function fetchVersions(
  session: PgSession,
  keys: readonly Key[],
  facts: FetchedDocs,
): Promise<void> {
  if (keys.length === 0) return;
  const { rows } = await session.client.query<[string, string, string]>({
    ...session.prepared(sql.FETCH_VERSIONS),
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

/** Under the head: puts what has changed since into the facts, and answers what that is. */
export async function recheck(session: PgSession, facts: FetchedDocs): Promise<Key[]> {
  const { keys, versions } = facts;
  if (keys.length === 0) return [];
  const { rows } = await session.client.query<[string, string | null]>({
    ...session.prepared(sql.CHANGED),
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

const keyValues = (keys: readonly Key[]): Buffer[] => [
  textArray(keys.map(([table]) => table)),
  textArray(keys.map(([, key]) => toText(key))),
];

/** What would be lost with the answer to a COMMIT, and what to look for then. */
export interface Sent {
  last: LedgerRecord | undefined;
  xid: string;
  /** On which the transaction has that number. */
  timeline: string | null;
}

/** Answers what the server has against it once it has answered; rejects when it has not. */
export async function writeAndCommit(
  session: PgSession,
  statements: readonly Statement[],
): Promise<SvcError | undefined> {
  session.warning = undefined;
  const answers = await session.together(() =>
    Promise.all([
      ...statements.map((statement) => session.client.query(session.prepared(statement))),
      session.client.query("COMMIT"),
    ]),
  );
  // A failed transaction answers COMMIT with ROLLBACK. A warning means that a standby was not waited for.
  if (answers.at(-1)?.command !== "COMMIT")
    return new SvcError("unavailable", "ledger unavailable: rolled back");
  return session.warning === undefined ? undefined : notConfirmed();
}

/**
 * Ends a transaction that has changed nothing. What its units were told by the documents is answered for like
 * anything else, so it ends like one that wrote: behind everything that it has seen, on disk and on the standby.
 */
export async function commitNothing(session: PgSession): Promise<void> {
  session.warning = undefined;
  await session.client.query("COMMIT");
  if (session.warning !== undefined) throw notConfirmed();
}

export interface Statement {
  name: string;
  text: string;
  values: (Buffer | string | number)[];
}

/** Everything a batch changed, ready to be sent. Throws on a value that JSON or an array cannot hold. */
export function statementsOf(batch: Batch, locked: Locked): Statement[] {
  return [...documents([...batch.changes]), ...recordsOf(batch, locked)];
}

const hasPlaces = ({ table }: DocChange): boolean => PLACES[table] !== undefined;

/** What can be made ready of a batch before its place is known: documents of any size, but those that name places. */
export function statementsAhead(batch: Batch): Statement[] {
  return documents([...batch.changes].filter((change) => !hasPlaces(change)));
}

/** The rest, once it is sealed: it grows with the records alone. */
export function statementsBehind(batch: Batch, locked: Locked): Statement[] {
  return [...documents([...batch.changes].filter(hasPlaces)), ...recordsOf(batch, locked)];
}

function documents(changes: readonly DocChange[]): Statement[] {
  const { puts, removed } = split(changes);
  const statements: Statement[] = [...chunks(puts)].map((chunk) => ({
    ...sql.PUT,
    values: putValues(chunk),
  }));
  if (removed.length > 0) {
    const values = keyValues(removed.map(({ table, key }) => [table, key]));
    statements.push({ ...sql.REMOVE, values });
  }
  return statements;
}

function recordsOf(batch: Batch, { head, events }: Locked): Statement[] {
  const advance = { ...sql.ADVANCE, values: advanceValues(batch, events) };
  if (batch.records.length === 0) return [advance];
  return [{ ...sql.APPEND, values: appendValues(batch, head) }, advance];
}

function appendValues({ records, lines }: Batch, head: Head): (Buffer | number)[] {
  const text = (name: "run_id" | "event" | "actor" | "tool"): Buffer =>
    textArray(records.map((record) => (record[name] === undefined ? undefined : toText(record[name]))));
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
  doc: Tables[TableName];
  json: string;
}

function split(changes: Iterable<DocChange>): { puts: Put[]; removed: DocChange[] } {
  const puts: Put[] = [];
  const removed: DocChange[] = [];
  for (const change of changes) {
    const { table, key, doc } = change;
    if (doc === undefined) removed.push(change);
    else puts.push({ table, key, doc, json: docText(table, doc) });
  }
  return { puts, removed };
}

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
  tenant === null ? undefined : toText(tenant);

function putValues(puts: readonly Put[]): Buffer[] {
  const index = puts.map(({ table, doc }) =>
    (INDEX[table] as (doc: unknown) => ReturnType<(typeof INDEX)["runs"]>)(doc),
  );
  return [
    textArray(puts.map(({ table }) => table)),
    textArray(puts.map(({ key }) => toText(key))),
    textArray(index.map(({ owner }) => toText(owner))),
    doubleArray(index.map(({ sort }) => sort)),
    textArray(index.map(({ tag }) => toText(tag))),
    textArray(puts.map(({ json }) => json)),
    textArray(puts.map(({ table, doc }) => ofTenant(tenantOfDoc(table, doc)))),
  ];
}

function advanceValues(batch: Batch, before: Record<string, number>): (Buffer | string | number)[] {
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

/** Takes the head as a batch would, and leaves it: whether a batch could be written now. */
export async function touch(session: PgSession): Promise<void> {
  await session.together(() =>
    Promise.all([session.begin(sql.BEGIN), lock(session), session.client.query("ROLLBACK")]),
  );
}

/**
 * Whether a batch whose COMMIT was never answered is there. The head lock is a barrier: the lost
 * transaction holds it until it has ended one way or the other, so a no is final. A record is looked for
 * by its place and hash; a batch without records by its transaction, which only the server that had it can know: one that
 * was promoted since may have given its number to another.
 */
export async function hasLanded(session: PgSession, { last, xid, timeline }: Sent): Promise<boolean> {
  const { client } = session;
  if (last === undefined && session.timeline !== timeline) throw outcomeUnknown();
  const question =
    last === undefined
      ? { ...sql.LANDED_TRANSACTION, values: [xid] }
      : { ...sql.LANDED_RECORD, values: [last.seq, last.hash] };
  const [, , answer] = await session.together(() =>
    Promise.all([
      session.begin(sql.BEGIN),
      lock(session),
      client.query<{ yes: boolean | null }>(session.prepared(question)),
      client.query("ROLLBACK"),
    ]),
  );
  return answer.rows[0]?.yes === true;
}
