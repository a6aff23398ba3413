/** The databases under the SQL stores, reached without the store: for attempts that must fail, and for damage. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import pg from "pg";

export interface Sql {
  /** Runs the statements and answers the rows of the last one. */
  run(text: string): Promise<Record<string, unknown>[]>;
  /** Statements that would change or remove record 0. The database must refuse each. */
  readonly forbidden: readonly string[];
  /** Takes the triggers away, changes a record's line, and leaves. */
  tamper(seq: number, change: (line: string) => string): Promise<void>;
}

export function postgresSql(url: string): Sql {
  const run = async (text: string): Promise<Record<string, unknown>[]> => {
    const client = new pg.Client(url);
    await client.connect();
    try {
      const answer = (await client.query(text)) as unknown as pg.QueryResult | pg.QueryResult[];
      return (Array.isArray(answer) ? answer.at(-1)! : answer).rows;
    } finally {
      await client.end();
    }
  };
  return {
    run,
    forbidden: [
      "UPDATE svc_ledger SET line = 'x' WHERE seq = 0",
      "DELETE FROM svc_ledger WHERE seq = 0",
      "TRUNCATE svc_ledger",
      "TRUNCATE svc_ledger CASCADE",
      `INSERT INTO svc_ledger SELECT * FROM svc_ledger WHERE seq = 0
       ON CONFLICT (seq) DO UPDATE SET line = 'x'`,
      `MERGE INTO svc_ledger l USING (SELECT 0 AS seq) n ON l.seq = n.seq WHEN MATCHED THEN DELETE`,
      "SET session_replication_role = replica; DELETE FROM svc_ledger WHERE seq = 0",
      "COPY (SELECT 1) TO STDOUT; UPDATE svc_ledger SET hash = prev, prev = hash",
    ],
    async tamper(seq, change) {
      const rows = await run(`SELECT line FROM svc_ledger WHERE seq = ${seq}`);
      const line = pg.escapeLiteral(change(String(rows[0]!.line)));
      await run(`ALTER TABLE svc_ledger DISABLE TRIGGER USER;
        UPDATE svc_ledger SET line = ${line} WHERE seq = ${seq};
        ALTER TABLE svc_ledger ENABLE ALWAYS TRIGGER svc_ledger_rows;
        ALTER TABLE svc_ledger ENABLE ALWAYS TRIGGER svc_ledger_truncate`);
    },
  };
}

/** Finds the database file and the ledger's table by themselves, since both are the store's own business. */
export function sqliteSql(data: string): Sql {
  const withDatabase = <T>(use: (database: DatabaseSyncInstance, ledger: string) => T): T => {
    const file = readdirSync(data).find((name) => /\.(?:db|sqlite3?)$/.test(name));
    if (file === undefined) throw new Error(`no SQLite database in ${data}`);
    const database = new DatabaseSync(join(data, file));
    try {
      const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
      const names = tables.map(({ name }) => String(name));
      return use(database, names.find((name) => /ledger/.test(name))!);
    } finally {
      database.close();
    }
  };
  return {
    run: async (text) =>
      withDatabase((database, ledger) => {
        const statement = text.replaceAll("svc_ledger", ledger);
        if (/^\s*SELECT/i.test(statement))
          return database.prepare(statement).all() as Record<string, unknown>[];
        database.exec(statement);
        return [];
      }),
    forbidden: [
      "UPDATE svc_ledger SET line = 'x' WHERE seq = 0",
      "DELETE FROM svc_ledger WHERE seq = 0",
      "DELETE FROM svc_ledger",
      "REPLACE INTO svc_ledger SELECT * FROM svc_ledger WHERE seq = 0",
      "INSERT OR REPLACE INTO svc_ledger SELECT * FROM svc_ledger WHERE seq = 0",
      "UPDATE OR REPLACE svc_ledger SET seq = 1 WHERE seq = 0",
      `INSERT INTO svc_ledger SELECT * FROM svc_ledger WHERE seq = 0
       ON CONFLICT (seq) DO UPDATE SET line = 'x'`,
    ],
    tamper: async (seq, change) =>
      withDatabase((database, ledger) => {
        const triggers = database.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all();
        for (const { name } of triggers) database.exec(`DROP TRIGGER ${String(name)}`);
        const row = database.prepare(`SELECT line FROM ${ledger} WHERE seq = ?`).get(seq) as { line: string };
        database.prepare(`UPDATE ${ledger} SET line = ? WHERE seq = ?`).run(change(row.line), seq);
        for (const { sql } of triggers) database.exec(String(sql));
      }),
  };
}
