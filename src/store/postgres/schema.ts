/**
 * The tables and their migrations. Migrations run at the first start, in one process at a time. The server only reads
 * an up-to-date database, so its role need not own anything.
 */
import type pg from "pg";
import { SvcError } from "../../kernel/errors.ts";
import { sqlState, toStoreError } from "./connect/failures.ts";
import { TENANT_RANGE_RECORDS } from "./queries.ts";

/** An arbitrary number that all processes share. */
const MIGRATION_LOCK = 7_370_017;
const OLDEST_SERVER = 130_000;
const TABLE_LOCK_MS = 2_000;

/**
 * Text compares byte by byte (`COLLATE "C"`): the same everywhere, and at a third of the cost. The triggers fire
 * ALWAYS, or `session_replication_role = replica` would bypass them. Time has no index: results are in `seq` order, so
 * a search by time needs the range of the chain. svc_times stores it for every ten minutes, regardless of clock
 * changes.
 */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE svc_ledger (
    seq bigint PRIMARY KEY,
    prev text COLLATE "C" NOT NULL UNIQUE,
    hash text COLLATE "C" NOT NULL,
    line text COLLATE "C" NOT NULL,
    run_id text COLLATE "C",
    event text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL,
    tool text COLLATE "C",
    ts_ms bigint NOT NULL
  );
  CREATE INDEX svc_ledger_run ON svc_ledger (run_id, seq) WHERE run_id IS NOT NULL;
  CREATE INDEX svc_ledger_event ON svc_ledger (event, seq);
  CREATE INDEX svc_ledger_actor ON svc_ledger (actor, seq);
  CREATE INDEX svc_ledger_tool ON svc_ledger (tool, seq) WHERE tool IS NOT NULL;

  CREATE FUNCTION svc_append_only() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'ledger is append-only' USING ERRCODE = 'restrict_violation'; END $$;
  CREATE TRIGGER svc_ledger_rows BEFORE UPDATE OR DELETE ON svc_ledger
    FOR EACH ROW EXECUTE FUNCTION svc_append_only();
  CREATE TRIGGER svc_ledger_truncate BEFORE TRUNCATE ON svc_ledger
    FOR EACH STATEMENT EXECUTE FUNCTION svc_append_only();
  ALTER TABLE svc_ledger ENABLE ALWAYS TRIGGER svc_ledger_rows;
  ALTER TABLE svc_ledger ENABLE ALWAYS TRIGGER svc_ledger_truncate;

  CREATE TABLE svc_times (
    slot bigint PRIMARY KEY,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL
  ) WITH (fillfactor = 50);

  CREATE TABLE svc_docs (
    tbl text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    sort double precision NOT NULL,
    tag text COLLATE "C" NOT NULL,
    doc text COLLATE "C" NOT NULL,
    PRIMARY KEY (tbl, key)
  ) WITH (fillfactor = 80);
  CREATE INDEX svc_docs_sort ON svc_docs (tbl, sort, key);
  CREATE INDEX svc_docs_owner ON svc_docs (tbl, owner, sort, key) WHERE owner <> '';
  CREATE INDEX svc_docs_tag ON svc_docs (tbl, tag, sort, key) WHERE tag <> '';

  CREATE TABLE svc_head (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    records bigint NOT NULL,
    hash text COLLATE "C" NOT NULL,
    events jsonb NOT NULL
  ) WITH (fillfactor = 10);
  INSERT INTO svc_head (records, hash, events) VALUES (0, repeat('0', 64), '{}');
  `,
  // A tree of random hashes gets slower as the ledger grows. Each position (seq) is already unique, and a record that
  // follows its predecessor's hash leaves no room for a second one. Columns stay, because a server of the previous
  // version still writes them. Documents of an intent are listed by run only. The migration locks both tables at once,
  // in the order of a batch, to avoid a deadlock.
  `
  LOCK TABLE svc_ledger, svc_docs IN ACCESS EXCLUSIVE MODE;
  CREATE FUNCTION svc_one_chain() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  BEGIN
    IF EXISTS (SELECT FROM fresh f WHERE f.prev IS DISTINCT FROM CASE f.seq WHEN 0 THEN repeat('0', 64)
        ELSE (SELECT l.hash FROM svc_ledger l WHERE l.seq = f.seq - 1) END) THEN
      RAISE EXCEPTION 'ledger is append-only: prev must be unique, the hash of the record before'
        USING ERRCODE = 'unique_violation';
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER svc_ledger_chain AFTER INSERT ON svc_ledger REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION svc_one_chain();
  ALTER TABLE svc_ledger ENABLE ALWAYS TRIGGER svc_ledger_chain;
  ALTER TABLE svc_ledger DROP CONSTRAINT svc_ledger_prev_key;

  DROP INDEX svc_docs_sort, svc_docs_tag;
  CREATE INDEX svc_docs_sort ON svc_docs (tbl, sort, key)
    WHERE tbl NOT IN ('steps', 'payloads', 'idempotency', 'run_tools');
  CREATE INDEX svc_docs_tag ON svc_docs (tbl, tag, sort, key) WHERE tag <> '' AND tbl NOT IN ('steps', 'run_tools');
  `,
  // Lists and counts for a tenant do not depend on the data of other tenants. A server of the previous version
  // continues without tenants; the trigger fills them in. A column, because an index over the document itself would
  // change with every change of a run.
  `
  LOCK TABLE svc_docs IN ACCESS EXCLUSIVE MODE;
  ALTER TABLE svc_docs ADD COLUMN tenant text COLLATE "C";
  CREATE FUNCTION svc_tenant() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    NEW.tenant := substring(NEW.doc FROM '"tenant":("(?:[^"\\\\]|\\\\.)*")')::json #>> '{}';
    RETURN NEW;
  END $$;
  CREATE TRIGGER svc_docs_tenant BEFORE INSERT OR UPDATE ON svc_docs FOR EACH ROW
    WHEN (NEW.tenant IS NULL AND NEW.tbl IN ('runs', 'approvals', 'captures') AND NEW.doc LIKE '%"tenant":"%')
    EXECUTE FUNCTION svc_tenant();
  UPDATE svc_docs SET tenant = NULL WHERE tbl IN ('runs', 'approvals', 'captures') AND doc LIKE '%"tenant":"%';
  CREATE INDEX svc_docs_tenant ON svc_docs (tbl, tenant, sort, key) WHERE tenant <> '';
  `,
  // The ranges of the chain in which a tenant has records. An index over the records would cost every record; this
  // costs one row per range. The tenant comes from the line's JSON: quotes inside a text are escaped, and only "tool"
  // and "ts_ms" can follow it. So this also works for a server of the previous version, and therefore its role needs
  // write access here. The row with the empty tenant stores the first covered range.
  `
  LOCK TABLE svc_ledger IN SHARE ROW EXCLUSIVE MODE;
  CREATE TABLE svc_tenants (
    tenant text COLLATE "C" NOT NULL,
    stretch bigint NOT NULL,
    PRIMARY KEY (tenant, stretch)
  );
  INSERT INTO svc_tenants SELECT '', (records + ${TENANT_RANGE_RECORDS} - 1) / ${TENANT_RANGE_RECORDS} FROM svc_head;
  DO $$ DECLARE role text; BEGIN
    FOR role IN SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
      FROM pg_class, aclexplode(relacl) a WHERE oid = 'svc_ledger'::regclass AND a.privilege_type = 'INSERT'
    LOOP EXECUTE 'GRANT SELECT, INSERT ON svc_tenants TO ' || role; END LOOP;
  END $$;
  CREATE FUNCTION svc_note_tenants() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
  BEGIN
    INSERT INTO svc_tenants
      SELECT DISTINCT split_part(split_part(split_part(line, ',"tenant":', 2), ',"tool":', 1), ',"ts_ms":', 1),
        seq / ${TENANT_RANGE_RECORDS}
      FROM fresh WHERE strpos(line, ',"tenant":') > 0
      ON CONFLICT DO NOTHING;
    RETURN NULL;
  END $$;
  CREATE TRIGGER svc_ledger_tenants AFTER INSERT ON svc_ledger REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION svc_note_tenants();
  ALTER TABLE svc_ledger ENABLE ALWAYS TRIGGER svc_ledger_tenants;
  `,
];

const SCHEMA_VERSION = MIGRATIONS.length;

/** The exact rights that the server's role needs on each table. */
const RIGHTS: Record<string, readonly string[]> = {
  svc_ledger: ["SELECT", "INSERT"],
  svc_docs: ["SELECT", "INSERT", "UPDATE", "DELETE"],
  svc_times: ["SELECT", "INSERT", "UPDATE"],
  svc_head: ["SELECT", "UPDATE"],
  svc_tenants: ["SELECT", "INSERT"],
};

/**
 * Migrates the database to this version, or reports the obstacle. End the session afterwards: a failed migration leaves
 * its transaction open.
 */
export async function prepareDatabase(client: pg.Client): Promise<void> {
  await assertServer(client);
  if ((await versionOf(client)) !== SCHEMA_VERSION) await migrate(client);
  await assertRights(client);
}

async function assertServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ version: string; encoding: string }>(
    "SELECT current_setting('server_version_num') AS version, current_setting('server_encoding') AS encoding",
  );
  const { version, encoding } = rows[0]!;
  if (Number(version) < OLDEST_SERVER) {
    throw new SvcError("invalid", "the postgres store needs PostgreSQL 13 or newer");
  }
  if (encoding !== "UTF8") {
    throw new SvcError("invalid", `the database's encoding is ${encoding}; create one with ENCODING 'UTF8'`);
  }
}

async function versionOf(client: pg.Client): Promise<number> {
  // Reads the catalog instead of to_regclass, which can return a stale result after another process created the table.
  const there = await client.query(
    "SELECT FROM pg_class WHERE relname = 'svc_schema' AND pg_table_is_visible(oid)",
  );
  if (there.rowCount === 0) return 0;
  const { rows } = await client.query<{ version: number }>("SELECT version FROM svc_schema");
  const version = rows[0]?.version ?? 0;
  if (version > SCHEMA_VERSION) {
    throw new SvcError(
      "invalid",
      `the database was written by a newer svc (tables of version ${version}, this one knows ${SCHEMA_VERSION}); upgrade this server`,
    );
  }
  return version;
}

async function migrate(client: pg.Client): Promise<void> {
  try {
    await client.query("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
    // Lasts until the transaction ends. A session lock would stay with a pooler's connection.
    await client.query(`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
    // Running servers continue in the meantime, and must not queue behind this because of one long read.
    await client.query(`SET LOCAL lock_timeout = ${TABLE_LOCK_MS}`);
    const from = await versionOf(client);
    if (from === 0) await client.query("CREATE TABLE svc_schema (version integer NOT NULL)");
    for (const migration of MIGRATIONS.slice(from)) await client.query(migration);
    if (from === 0) await client.query(`INSERT INTO svc_schema VALUES (${SCHEMA_VERSION})`);
    else await client.query(`UPDATE svc_schema SET version = ${SCHEMA_VERSION}`);
    await client.query("COMMIT");
  } catch (error) {
    throw migrationFailure(error);
  }
}

function migrationFailure(error: unknown): SvcError {
  const state = sqlState(error);
  if (state === "55P03") {
    return new SvcError(
      "unavailable",
      "the svc_ tables are to be changed and another session has them in use, perhaps a dump; start again when it has ended",
    );
  }
  if (state === "42501") {
    return new SvcError(
      "unavailable",
      "the database role may not create the svc_ tables, or bring them up to this version; start once with a role that owns them, then grant this one its rights",
    );
  }
  if (state === "42P07" || state === "42710" || state === "42723") {
    return new SvcError(
      "invalid",
      "the database already has something called svc_ledger, svc_docs, svc_times, svc_tenants or svc_head that svc did not make; use another database or schema",
    );
  }
  return toStoreError(error);
}

async function assertRights(client: pg.Client): Promise<void> {
  const wanted = Object.entries(RIGHTS).flatMap(([table, rights]) => rights.map((right) => [table, right]));
  const { rows } = await client.query<{ line: string }>({
    text: `SELECT r || ' on ' || t AS line FROM unnest($1::text[], $2::text[]) AS w(t, r)
           WHERE NOT has_table_privilege(t, r)`,
    values: [wanted.map(([table]) => table), wanted.map(([, right]) => right)],
  });
  if (rows.length === 0) return;
  const missing = rows.map(({ line }) => line).join(", ");
  throw new SvcError("unavailable", `the database role lacks ${missing}; its owner can grant that`);
}
