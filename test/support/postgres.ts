/**
 * Databases for tests. `freshDatabase` gives an empty one on the server that the whole run shares;
 * `startPostgres` gives a private server that a fault test may stop, kill and freeze.
 */
import { randomBytes } from "node:crypto";
import pg from "pg";
import { askBroker } from "./broker.ts";
import { type PgOptions, PgServer } from "./pg-server.ts";

export type { PgServer, StopMode } from "./pg-server.ts";

export interface FreshDatabase {
  readonly url: string;
  readonly name: string;
  /** Ends all connections and removes the database. */
  drop(): Promise<void>;
}

let shared: Promise<string> | undefined;

/** The shared server's URL, in a database that nobody may put tables into. */
export function sharedServerUrl(): Promise<string> {
  shared ??= process.env.SVC_TEST_PG_URL
    ? Promise.resolve(process.env.SVC_TEST_PG_URL)
    : askBroker("postgres");
  return shared;
}

/** A new, empty, separate database, on the shared server or on the one given. */
export async function freshDatabase(server?: PgServer): Promise<FreshDatabase> {
  const admin = server?.url() ?? (await sharedServerUrl());
  const name = `${databasePrefix()}${randomBytes(6).toString("hex")}`;
  await command(admin, `CREATE DATABASE ${name}`);
  const url = new URL(admin);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    name,
    drop: () => command(admin, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

/** A private server. Call `dispose` when the test ends; it also goes when this process does. */
export async function startPostgres(options: PgOptions = {}): Promise<PgServer> {
  // A worker whose vitest was killed has nobody to report to; its server must not wait for its test.
  if (process.connected) process.once("disconnect", () => process.exit(1));
  return PgServer.create(options);
}

/** All databases of one run begin alike, so that the global teardown can find those a test left behind. */
export function databasePrefix(): string {
  return `svc_test_${process.env.SVC_TEST_RUN ?? "solo"}_`;
}

/** Drops what the tests of this run left on a server that is not ours to delete. */
export async function dropLeftovers(admin: string): Promise<void> {
  const client = new pg.Client(admin);
  await client.connect();
  try {
    const { rows } = await client.query<{ datname: string }>(
      "SELECT datname FROM pg_database WHERE starts_with(datname, $1)",
      [databasePrefix()],
    );
    for (const { datname } of rows) await client.query(`DROP DATABASE IF EXISTS ${datname} WITH (FORCE)`);
  } finally {
    await client.end();
  }
}

async function command(url: string, sql: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
