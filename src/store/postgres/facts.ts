/**
 * The documents that a batch's units read, fetched beforehand, and the running of the units over them.
 * A unit that reads what was not fetched is run again, once it has been.
 */
import type { Head } from "../../ledger/record.ts";
import type { Key } from "../../port/store.ts";
import type { TableName, Tables } from "../../port/tables.ts";
import { Batch, MissingFact, type Pending } from "../batch.ts";

type AnyDoc = Tables[TableName];

/** The document's JSON until it is read, then the document; undefined is known to be absent. */
type Fact = { json: string; doc?: AnyDoc } | undefined;

/** A fact, and the version that it is one of; both undefined for a document that is known to be absent. */
export interface Versioned {
  fact?: Fact;
  version?: string | undefined;
}

export class FetchedDocs {
  private readonly known = new Map<TableName, Map<string, Fact>>();

  /** What was read before the head was taken, in which version; undefined is known to be absent. */
  readonly keys: Key[] = [];
  readonly versions: (string | undefined)[] = [];

  /** The same for what has to be held against the database again later. */
  addVersions(
    keys: readonly Key[],
    json: readonly (string | undefined)[],
    versions: readonly (string | undefined)[],
  ): void {
    this.add(keys, json);
    this.keys.push(...keys);
    this.versions.push(...versions);
  }

  /** The same for what was known before. */
  lend([table, key]: Key, { fact, version }: Versioned): void {
    this.set(table, key, fact);
    this.keys.push([table, key]);
    this.versions.push(version);
  }

  /** Takes in the answer to a fetch: the JSON of each key in turn, undefined where there is no document. */
  add(keys: readonly Key[], json: readonly (string | undefined)[]): void {
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

  readonly read = (table: TableName, key: string): AnyDoc | undefined => {
    const docs = this.known.get(table);
    const fact = docs?.get(key);
    if (fact !== undefined) {
      fact.doc ??= JSON.parse(fact.json) as AnyDoc;
      return fact.doc;
    }
    if (docs?.has(key)) return undefined;
    throw new MissingFact([[table, key]]);
  };

  readonly lacks = (table: TableName, key: string): boolean => this.known.get(table)?.has(key) !== true;
}

/**
 * Runs the units in turn, without a head where its place is not known yet. What ran stays as it ran; only those from a
 * missing fact on are run again.
 */
export async function runUnits(
  units: readonly Pending[],
  head: Head | undefined,
  facts: FetchedDocs,
  obtain: (keys: readonly Key[]) => Promise<void>,
): Promise<Batch> {
  const batch = new Batch(head, facts.read, facts.lacks);
  for (let next = 0; next < units.length; ) {
    try {
      batch.run(units[next]!);
      next++;
    } catch (error) {
      if (!(error instanceof MissingFact)) throw error;
      await obtain([...error.keys, ...guessMissing(units.slice(next + 1), head, facts)]);
    }
  }
  return batch;
}

/**
 * What the rest of the batch will also miss, by running it for nothing: one round trip for all of them
 * instead of one each. It is a guess, since they do not see what the units before them wrote.
 */
function guessMissing(units: readonly Pending[], head: Head | undefined, facts: FetchedDocs): Key[] {
  const missing: Key[] = [];
  const scratch = new Batch(head, facts.read, facts.lacks);
  for (const { unit } of units) {
    try {
      scratch.run({ unit, outcome: undefined });
    } catch (error) {
      if (!(error instanceof MissingFact)) throw error;
      missing.push(...error.keys);
    }
  }
  return missing;
}
