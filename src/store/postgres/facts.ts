/**
 * The documents that a batch's units read, fetched beforehand, and the running of the units over them.
 * A unit that reads what was not fetched is run again, once it has been.
 */
import type { Head } from "../../ledger/record.ts";
import type { Key } from "../../port/store.ts";
import type { TableName, Tables } from "../../port/tables.ts";
import { Batch, MissingFact, type Pending } from "../batch.ts";

type AnyDoc = Tables[TableName];

export class FetchedDocs {
  /** The document's JSON until it is read, then the document; undefined is known to be absent. */
  private readonly known = new Map<TableName, Map<string, { json: string; doc?: AnyDoc } | undefined>>();

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

  /** Takes in the answer to a fetch: the JSON of each key in turn, undefined where there is no document. */
  add(keys: readonly Key[], json: readonly (string | undefined)[]): void {
    keys.forEach(([table, key], i) => {
      let docs = this.known.get(table);
      if (docs === undefined) {
        docs = new Map();
        this.known.set(table, docs);
      }
      const text = json[i];
      docs.set(key, text === undefined ? undefined : { json: text });
    });
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
