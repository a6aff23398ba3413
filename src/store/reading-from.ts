/** A store whose reads go to its replica; whatever writes or waits stays where it was. */
import type { Replica, Store } from "../port/store.ts";

export function readingFrom(store: Store, { reads }: Replica): Store {
  return {
    kind: store.kind,
    transact: (unit) => store.transact(unit),
    get: (table, key) => reads.get(table, key),
    list: (table, query) => reads.list(table, query),
    count: (table, query = {}) => reads.count(table, query),
    records: (query) => reads.records(query),
    head: () => reads.head(),
    changed: (signal) => store.changed(signal),
    ready: () => store.ready(),
    scrub: () => store.scrub(),
    close: () => store.close(),
  };
}
