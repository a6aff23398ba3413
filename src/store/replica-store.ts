/** Sends a store's reads to its replica. Writes and waits still go to the primary. */
import type { ReadReplica, StateStore } from "../govern/port/store.ts";

export function withReplicaReads(store: StateStore, { reads }: ReadReplica): StateStore {
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
