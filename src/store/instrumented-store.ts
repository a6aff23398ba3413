/** An instrumented store: measures commits and counts failed operations. */
import type { StateStore } from "../govern/port/store.ts";
import { SvcError } from "../kernel/errors.ts";

export interface StoreWatch {
  /** A unit and any records of it are durable. */
  committed(ms: number): void;
  /** The storage failed. A unit refused for its own reasons does not count. */
  failed(operation: string): void;
}

export function instrumentedStore(store: StateStore, watch: StoreWatch): StateStore {
  const tell = (operation: string, error: unknown): never => {
    if (!(error instanceof SvcError) || error.code === "unavailable" || error.code === "corrupt")
      watch.failed(operation);
    throw error;
  };
  const seen = <T>(operation: string, promise: Promise<T>): Promise<T> =>
    promise.catch((error: unknown) => tell(operation, error));
  return {
    kind: store.kind,
    replica: store.replica,
    async transact(unit) {
      const start = performance.now();
      let value: Awaited<ReturnType<typeof unit.run>>;
      try {
        value = await store.transact(unit);
      } catch (error) {
        return tell("append", error);
      }
      watch.committed(performance.now() - start);
      return value;
    },
    get: (table, key) => seen("read", store.get(table, key)),
    list: (table, query) => seen("list", store.list(table, query)),
    count: (table, query) => seen("count", store.count(table, query)),
    records: (query) => seen("records", store.records(query)),
    head: () => seen("head", store.head()),
    changed: (signal) => store.changed(signal),
    ready: () => seen("ready", store.ready()),
    ...(store.time === undefined ? {} : { time: () => seen("time", store.time!()) }),
    scrub: () => seen("scrub", store.scrub()),
    close: () => store.close(),
  };
}
