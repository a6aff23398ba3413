/**
 * Prefetches the documents that a batch reads, and runs its units over them. A unit that reads another document runs
 * again after a fetch.
 */
import type { DocKey } from "../../govern/port/store.ts";
import type { TableDocs, TableName } from "../../govern/port/tables.ts";
import type { LedgerHead } from "../../ledger/record.ts";
import { MissingDocs, type PendingUnit, UnitBatch } from "../batch.ts";

type AnyDoc = TableDocs[TableName];

/** The document as JSON until the first read, then parsed. Undefined if the document is known not to exist. */
type Fact = { json: string; doc?: AnyDoc } | undefined;

/** Tables whose documents are first written without a read. */
const BORN_UNREAD: ReadonlySet<TableName> = new Set(["steps", "payloads"]);

/** A document and its version. Both are undefined if the document is known not to exist. */
export interface VersionedDoc {
  fact?: Fact;
  version?: string | undefined;
}

export class FetchedDocs {
  private readonly known = new Map<TableName, Map<string, Fact>>();

  /**
   * The documents read before the head lock, and their versions. An undefined version means that the document did not
   * exist.
   */
  readonly keys: DocKey[] = [];
  readonly versions: (string | undefined)[] = [];

  /** Adds documents with versions, which the writer compares with the database again later. */
  addVersions(
    keys: readonly DocKey[],
    json: readonly (string | undefined)[],
    versions: readonly (string | undefined)[],
  ): void {
    this.add(keys, json);
    this.keys.push(...keys);
    this.versions.push(...versions);
  }

  /** Adds a cached document with its version. */
  lend([table, key]: DocKey, { fact, version }: VersionedDoc): void {
    this.set(table, key, fact);
    this.keys.push([table, key]);
    this.versions.push(version);
  }

  /** Adds the result of a fetch: the JSON of each key in turn, or undefined for a missing document. */
  add(keys: readonly DocKey[], json: readonly (string | undefined)[]): void {
    keys.forEach(([table, key], i) => {
      const text = json[i];
      this.set(table, key, text === undefined ? undefined : { json: text });
    });
  }

  private set(table: TableName, key: string, fact: Fact): void {
    let docs = this.known.get(table);
    if (docs === undefined) {
      docs = new Map();
      this.known.set(table, docs);
    }
    docs.set(key, fact);
  }

  fact(table: TableName, key: string): Fact {
    return this.known.get(table)?.get(key);
  }

  /**
   * Whether the database has the document. Steps and their payloads that no unit has read are new: their keys are
   * counted. If one exists after all, the writer writes the batch again without this guess.
   */
  readonly has = ([table, key]: DocKey): boolean | undefined => {
    const docs = this.known.get(table);
    if (docs?.has(key)) return docs.get(key) !== undefined;
    return BORN_UNREAD.has(table) ? false : undefined;
  };

  readonly read = (table: TableName, key: string): AnyDoc | undefined => {
    const docs = this.known.get(table);
    const fact = docs?.get(key);
    if (fact !== undefined) {
      fact.doc ??= JSON.parse(fact.json) as AnyDoc;
      return fact.doc;
    }
    if (docs?.has(key)) return undefined;
    throw new MissingDocs([[table, key]]);
  };

  readonly lacks = (table: TableName, key: string): boolean => this.known.get(table)?.has(key) !== true;
}

/**
 * Runs the units in turn, without a head if the position is not known yet. After a missing document, only the units
 * from there on run again.
 */
export async function runUnits(
  units: readonly PendingUnit[],
  head: LedgerHead | undefined,
  facts: FetchedDocs,
  obtain: (keys: readonly DocKey[]) => Promise<void>,
): Promise<UnitBatch> {
  const batch = new UnitBatch(head, facts.read, facts.lacks);
  for (let next = 0; next < units.length; ) {
    try {
      batch.run(units[next]!);
      next++;
    } catch (error) {
      if (!(error instanceof MissingDocs)) throw error;
      await obtain([...error.keys, ...guessMissing(units.slice(next + 1), head, facts)]);
    }
  }
  return batch;
}

/**
 * Runs the rest of the batch speculatively to find its other missing documents: one round trip for all of them instead
 * of one each. A guess, because these units do not see the writes of earlier ones.
 */
function guessMissing(
  units: readonly PendingUnit[],
  head: LedgerHead | undefined,
  facts: FetchedDocs,
): DocKey[] {
  const missing: DocKey[] = [];
  const scratch = new UnitBatch(head, facts.read, facts.lacks);
  for (const { unit } of units) {
    try {
      scratch.run({ unit, outcome: undefined });
    } catch (error) {
      if (!(error instanceof MissingDocs)) throw error;
      missing.push(...error.keys);
    }
  }
  return missing;
}
