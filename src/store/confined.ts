/**
 * A store as one tenant sees it: what belongs to other tenants is not there, whichever way it is asked for. Rules,
 * counters and other things of the service itself stay visible; they are no tenant's. The head stays the ledger's,
 * since proofs and pages go by it: a count for people is `shownRecords`.
 */
import { conflict } from "../kernel/errors.ts";
import type { Halt } from "../model/approval.ts";
import type { DocRow, ListQuery, Store, Tx } from "../port/store.ts";
import { hasTenants, type TableName, type Tables } from "../port/tables.ts";

const PAGE = 1_000;

interface Whole {
  store: Store;
  tenant: string;
}
const confined = new WeakMap<Store, Whole>();

/** The store behind, for proofs: they need the hash of every record, and show no other record's content. */
export const wholeOf = (store: Store): Store => confined.get(store)?.store ?? store;

/** The tenant that the store is confined to; null where it shows everything. */
export const tenantOf = (store: Store): string | null => confined.get(store)?.tenant ?? null;

export function confinedStore(store: Store, tenant: string): Store {
  const view: Store = {
    kind: store.kind,
    transact: (unit) => store.transact({ ...unit, run: (tx) => unit.run(confinedTx(tx, tenant)) }),
    async get(table, key) {
      const doc = await store.get(table, key);
      const asked = { store, tenant, key, query: undefined };
      return doc !== undefined && (await belongs(table, doc, asked)) ? shown(table, doc, asked) : undefined;
    },
    list: (table, query) => listOwn(store, tenant, table, query),
    async count(table, query) {
      if (hasTenants(table)) return store.count(table, { ...query, tenant });
      let count = 0;
      let after: ListQuery["after"];
      for (;;) {
        const rows = await listOwn(store, tenant, table, { ...query, after, limit: PAGE });
        count += rows.length;
        const last = rows.at(-1);
        if (rows.length < PAGE || last === undefined) return count;
        after = { sort: last.sort, key: last.key };
      }
    },
    records: (query) => store.records({ ...query, tenant }),
    head: async () => ({ ...(await store.head()), events: {} }),
    changed: (signal) => store.changed(signal),
    ready: () => store.ready(),
    scrub: () => store.scrub(),
    close: () => store.close(),
  };
  confined.set(view, { store, tenant });
  return view;
}

/** How many records whoever looks through this store is told of. */
export async function shownRecords(store: Store): Promise<number> {
  const whole = confined.get(store);
  if (whole === undefined) return (await store.head()).records;
  let records = 0;
  let after: ListQuery["after"];
  for (;;) {
    const rows = await store.list("runs", { after, limit: PAGE });
    for (const { doc } of rows) records += doc.next_run_seq;
    const last = rows.at(-1);
    if (rows.length < PAGE || last === undefined) return records;
    after = { sort: last.sort, key: last.key };
  }
}

async function listOwn<N extends TableName>(
  store: Store,
  tenant: string,
  table: N,
  query: ListQuery,
): Promise<DocRow<N>[]> {
  const found: DocRow<N>[] = [];
  let after = query.after;
  const theirs = hasTenants(table) ? { ...query, tenant } : query;
  const limit = hasTenants(table) ? query.limit : Math.max(query.limit, PAGE);
  while (found.length < query.limit) {
    const rows = await store.list(table, { ...theirs, after, limit });
    for (const row of rows) {
      after = { sort: row.sort, key: row.key };
      const asked = { store, tenant, key: row.key, query };
      if (!(await belongs(table, row.doc, asked))) continue;
      found.push({ ...row, doc: await shown(table, row.doc, asked) });
      if (found.length === query.limit) return found;
    }
    if (rows.length < limit) break;
  }
  return found;
}

/** Inside a unit: a run, a request or a plan of another tenant cannot be found, and so not be changed. */
function confinedTx(tx: Tx, tenant: string): Tx {
  const isTheirs = (table: TableName, key: string): boolean => {
    const whose = OWNERS[table];
    const doc = whose && tx.get(table, key);
    return doc !== undefined && whose!(doc as never, tx) !== tenant;
  };
  const hidden = new Set<string>();
  // What seemed not to be there must not be put over what is.
  const assertOwn = (table: TableName, key: string): void => {
    if (hidden.has(`${table}/${key}`)) throw conflict("name_taken", `${key} is taken`);
  };
  return {
    get(table, key) {
      if (!isTheirs(table, key)) return tx.get(table, key);
      hidden.add(`${table}/${key}`);
      return undefined;
    },
    put(table, key, doc) {
      assertOwn(table, key);
      tx.put(table, key, doc);
    },
    delete(table, key) {
      assertOwn(table, key);
      tx.delete(table, key);
    },
    append: (draft) => tx.append(draft),
    expect: (keys) => tx.expect(keys),
    get head() {
      return tx.head;
    },
  };
}

/** Whose a document is that callers name by its id, and a unit looks up. */
const OWNERS: { [T in TableName]?: (doc: Tables[T], tx: Tx) => string | null | undefined } = {
  runs: ({ tenant }) => tenant,
  approvals: ({ tenant }) => tenant,
  plans: ({ run_id }, tx) => tx.get("runs", run_id)?.tenant,
};

interface Asked {
  store: Store;
  tenant: string;
  key: string;
  query: ListQuery | undefined;
}
type Rule<T> = (doc: T, asked: Asked) => boolean | Promise<boolean>;

const everybodys = () => true;
const byTenant: Rule<{ tenant: string | null }> = (doc, { tenant }) => doc.tenant === tenant;
const byRun: Rule<{ run_id: string }> = ({ run_id }, { store, tenant }) => ofRun(store, tenant, run_id);
/** Keyed by the run, and what of it. */
const byKey: Rule<unknown> = (_doc, { store, tenant, key }) => ofRun(store, tenant, key.split("/", 1)[0]!);

/** Whose a document is, for every table there is. */
const BELONGS: { [T in TableName]: Rule<Tables[T]> } = {
  runs: byTenant,
  approvals: byTenant,
  captures: byTenant,
  containments: byTenant,
  grants: ({ match }, { tenant }) => match.tenant === tenant,
  steps: byRun,
  closings: byRun,
  touches: byRun,
  run_tools: byRun,
  jobs: byRun,
  replies: byRun,
  idempotency: byRun,
  payloads: byKey,
  approval_slots: byKey,
  approval_values: byRun,
  plans: byRun,
  // What was lent to a person is that person's to use, wherever its lender belongs.
  delegations: ({ authority }, { tenant, query }) =>
    authority.tenant === tenant || query?.owner !== undefined,
  holds: ({ scope }, { store, tenant }) => {
    if (scope.tenant !== null) return scope.tenant === tenant;
    return scope.run_id === null ? false : ofRun(store, tenant, scope.run_id);
  },
  halts: everybodys,
  grant_buckets: everybodys,
  grant_shapes: everybodys,
  meta: everybodys,
  manifests: everybodys,
  drills: everybodys,
  counters: everybodys,
  leases: everybodys,
  pins: everybodys,
};

function belongs<N extends TableName>(table: N, doc: Tables[N], asked: Asked): boolean | Promise<boolean> {
  return BELONGS[table](doc, asked);
}

async function ofRun(store: Store, tenant: string, run_id: string): Promise<boolean> {
  return (await store.get("runs", run_id))?.tenant === tenant;
}

/** What is everybody's and names things of a tenant is looked into, not hidden. */
const PARTS: { [T in TableName]?: (doc: Tables[T], asked: Asked) => Tables[T] | Promise<Tables[T]> } = {
  /** Halts of this tenant, and those that hold for it as for every other without naming an actor of any. */
  halts({ active }, { tenant }) {
    const forAll = ({ scope }: Halt) => scope.tenant === null && scope.actor === null;
    return { active: active.filter((halt) => halt.scope.tenant === tenant || forAll(halt)) };
  },
  /** An undo is proven for all; whose call proved it is not for all to know. */
  async drills(doc, { store, tenant }) {
    const own = doc.run_id !== null && (await ofRun(store, tenant, doc.run_id));
    return own ? doc : { ...doc, run_id: null, by: null };
  },
};

function shown<N extends TableName>(table: N, doc: Tables[N], asked: Asked): Tables[N] | Promise<Tables[N]> {
  return PARTS[table]?.(doc, asked) ?? doc;
}
