/** A copy of a database at one moment, which can replace the database under its users. */
import pg from "pg";
import { databasePrefix } from "./postgres.ts";

export interface PgBackup {
  /** Throws everybody out and sets the database back; they find it again under the same URL. */
  restore(): Promise<void>;
}

let made = 0;

export async function backUp(url: string): Promise<PgBackup> {
  const name = new URL(url).pathname.slice(1);
  const copy = `${databasePrefix()}copy_${process.pid}_${made++}`;
  const copyTo = (to: string, from: string): string[] => [
    `ALTER DATABASE ${from} ALLOW_CONNECTIONS false`,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${from}'`,
    `CREATE DATABASE ${to} TEMPLATE ${from}`,
    `ALTER DATABASE ${from} ALLOW_CONNECTIONS true`,
  ];
  await asAdmin(url, copyTo(copy, name));
  return {
    restore: () => asAdmin(url, [`DROP DATABASE ${name} WITH (FORCE)`, ...copyTo(name, copy)]),
  };
}

async function asAdmin(url: string, statements: readonly string[]): Promise<void> {
  const admin = new URL(url);
  admin.pathname = "/postgres";
  const client = new pg.Client(admin.href);
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
