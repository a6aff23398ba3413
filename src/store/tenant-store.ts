/**
 * Tenant isolation: a view of a store that hides the documents and records of other tenants, on every read and write.
 * Service-wide data such as rules and counters stays visible. The head stays the ledger's, because proofs and pages
 * depend on it; `shownRecords` counts the visible records.
 */
import type { StoredHalt } from "../govern/approvals/approval.ts";
import type { DocRow, ListQuery, StateStore, StoreTx } from "../govern/port/store.ts";
import { hasTenants, type TableDocs, type TableName } from "../govern/port/tables.ts";
import { conflictError } from "../kernel/errors.ts";

const PAGE = 1_000;

interface Whole {
  store: StateStore;
  tenant: string;
}
const confined = new WeakMap<StateStore, Whole>();

/**
 * Returns the store without the tenant filter, for proofs. They need the hash of every record but show no other
 * content.
 */
export const unconfinedStore = (store: StateStore): StateStore => confined.get(store)?.store ?? store;

/** Returns the tenant of the view, or null for a store without a tenant filter. */
export const tenantOf = (store: StateStore): string | null => confined.get(store)?.tenant ?? null;

export function confinedStore(store: StateStore, tenant: string): StateStore {
  const view: StateStore = {
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

/** Counts the records that are visible through this store. */
export async function countVisibleRecords(store: StateStore): Promise<number> {
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
  store: StateStore,
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

/**
 * The tenant filter inside a unit: it cannot find a run, approval request or plan of another tenant, and so cannot
 * change it.
 */
function confinedTx(tx: StoreTx, tenant: string): StoreTx {
  const isTheirs = (table: TableName, key: string): boolean => {
    const whose = OWNERS[table];
    const doc = whose && tx.get(table, key);
    return doc !== undefined && whose!(doc as never, tx) !== tenant;
  };
  const hidden = new Set<string>();
  // A unit must not overwrite a document that is hidden from it.
  const assertOwn = (table: TableName, key: string): void => {
    if (hidden.has(`${table}/${key}`)) throw conflictError("name_taken", `${key} is taken`);
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

/** Returns the tenant of documents that callers name by id and that units look up. */
const OWNERS: { [T in TableName]?: (doc: TableDocs[T], tx: StoreTx) => string | null | undefined } = {
  runs: ({ tenant }) => tenant,
  approvals: ({ tenant }) => tenant,
  plans: ({ run_id }, tx) => tx.get("runs", run_id)?.tenant,
  incidents: ({ tenant }) => tenant,
  passkeys: ({ tenant }) => tenant,
  upstream_consents: ({ tenant }) => tenant,
  push_devices: ({ tenant }) => tenant,
};

interface Asked {
  store: StateStore;
  tenant: string;
  key: string;
  query: ListQuery | undefined;
}
type Rule<T> = (doc: T, asked: Asked) => boolean | Promise<boolean>;

const everybodys = () => true;
const nobodys = () => false;
const byTenant: Rule<{ tenant: string | null }> = (doc, { tenant }) => doc.tenant === tenant;
const byRun: Rule<{ run_id: string }> = ({ run_id }, { store, tenant }) => ofRun(store, tenant, run_id);
/** For keys that start with the run id. */
const byKey: Rule<unknown> = (_doc, { store, tenant, key }) => ofRun(store, tenant, key.split("/", 1)[0]!);

const byIncident: Rule<{ incident_id: string }> = async ({ incident_id }, { store, tenant }) =>
  (await store.get("incidents", incident_id))?.tenant === tenant;

/** Decides for each table whether a document belongs to the tenant. */
const BELONGS: { [T in TableName]: Rule<TableDocs[T]> } = {
  runs: byTenant,
  approvals: byTenant,
  captures: byTenant,
  containments: byTenant,
  incidents: byTenant,
  incident_causes: byIncident,
  incident_entries: byIncident,
  grants: ({ match }, { tenant }) => match.tenant === tenant,
  child_runs: byRun,
  steps: byRun,
  closings: byRun,
  touches: byRun,
  resource_calls: byRun,
  value_feeds: byRun,
  run_tools: byRun,
  jobs: byRun,
  replies: byRun,
  traces: byRun,
  trace_marks: byRun,
  tenant_marks: byRun,
  // Shared by the runs of a tenant, and needed by no list.
  tenant_traces: nobodys,
  tainted_stores: nobodys,
  // A document for several runs names none, and no list of a tenant needs it.
  earlier_calls: (doc, asked) => doc.run_id !== "" && byRun(doc, asked),
  idempotency: byRun,
  payloads: byKey,
  approval_slots: byKey,
  approval_values: byRun,
  plans: byRun,
  // A delegated authority belongs to its delegate, regardless of the delegator's tenant.
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
  passkeys: byTenant,
  upstream_consents: byTenant,
  challenges: everybodys,
  push_devices: byTenant,
};

function belongs<N extends TableName>(table: N, doc: TableDocs[N], asked: Asked): boolean | Promise<boolean> {
  return BELONGS[table](doc, asked);
}

async function ofRun(store: StateStore, tenant: string, run_id: string): Promise<boolean> {
  return (await store.get("runs", run_id))?.tenant === tenant;
}

/** Shared documents that name tenant data: the view filters their content instead of hiding them. */
const PARTS: {
  [T in TableName]?: (doc: TableDocs[T], asked: Asked) => TableDocs[T] | Promise<TableDocs[T]>;
} = {
  /** Keeps the tenant's halts, and service-wide halts without an actor. */
  halts({ active }, { tenant }) {
    const forAll = ({ scope }: StoredHalt) => scope.tenant === null && scope.actor === null;
    return { active: active.filter((halt) => halt.scope.tenant === tenant || forAll(halt)) };
  },
  /** The result of a drill is public. The run and person behind it are not. */
  async drills(doc, { store, tenant }) {
    const own = doc.run_id !== null && (await ofRun(store, tenant, doc.run_id));
    return own ? doc : { ...doc, run_id: null, by: null };
  },
};

function shown<N extends TableName>(
  table: N,
  doc: TableDocs[N],
  asked: Asked,
): TableDocs[N] | Promise<TableDocs[N]> {
  return PARTS[table]?.(doc, asked) ?? doc;
}
