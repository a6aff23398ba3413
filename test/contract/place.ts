/**
 * Where a store under test keeps its data. A place outlives the handles on it: it can be opened again,
 * opened by another process, and changed behind the store's back.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { StateStore } from "../../src/govern/port/store.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { openStore, type StoreKind } from "../../src/store/open.ts";
import { freshDatabase } from "../support/postgres.ts";
import { tempDir } from "../support/tmp.ts";
import { type Held, heldLogged, heldPostgres } from "./held.ts";
import { postgresSql, type Sql, sqliteSql } from "./sql.ts";

/** What a child process needs to know to open the same data. */
export interface PlaceSettings {
  store: StoreKind;
  data: string;
  database_url: string | null;
}

export interface Place {
  open(): Promise<StateStore>;
  /** Handles whose commits can be kept from becoming durable; undefined where nothing ever is. */
  readonly openHeld: (() => Promise<Held>) | undefined;
  /** Undefined where the data live and die with one handle. */
  readonly settings: PlaceSettings | undefined;
  /** The store's own database, where it has one. */
  readonly sql: Sql | undefined;
  /** Changes a record behind the store's back, as somebody with the right to the medium could. */
  tamper(seq: number, change: (line: string) => string): Promise<void>;
  /** What the store warned of. */
  readonly warnings: string[];
  /** Closes every handle that is still open, and removes the data. */
  dispose(): Promise<void>;
}

export type MakePlace = () => Promise<Place>;

export const memoryPlace: MakePlace = async () => {
  const handles: StateStore[] = [];
  return {
    open: async () => keep(handles, new MemoryStore()),
    openHeld: undefined,
    settings: undefined,
    sql: undefined,
    tamper: () => Promise.reject(new Error("memory has no medium")),
    warnings: [],
    dispose: () => closeAll(handles),
  };
};

export const filesPlace: MakePlace = async () => {
  const data = join(tempDir("files"), "data");
  const tamper = async (seq: number, change: (line: string) => string): Promise<void> => {
    const file = join(data, "ledger.jsonl");
    const lines = readFileSync(file, "utf8").split("\n");
    lines[seq] = change(lines[seq]!);
    writeFileSync(file, lines.join("\n"));
  };
  const hold = () => heldLogged("files", data);
  return durablePlace({ store: "files", data, database_url: null }, { sql: undefined, tamper, hold });
};

export const sqlitePlace: MakePlace = async () => {
  const data = join(tempDir("sqlite"), "data");
  const sql = sqliteSql(data);
  const hold = () => heldLogged("sqlite", data);
  return durablePlace({ store: "sqlite", data, database_url: null }, { sql, tamper: sql.tamper, hold });
};

export const postgresPlace: MakePlace = async () => {
  const database = await freshDatabase();
  const sql = postgresSql(database.url);
  return durablePlace(
    { store: "postgres", data: "", database_url: database.url },
    { sql, tamper: sql.tamper, hold: () => heldPostgres(database.url), drop: database.drop },
  );
};

interface Medium {
  sql: Sql | undefined;
  tamper: Place["tamper"];
  hold: () => Promise<Held>;
  drop?: () => Promise<void>;
}

function durablePlace(settings: PlaceSettings, { sql, tamper, hold, drop }: Medium): Place {
  const handles: StateStore[] = [];
  const letGo: (() => Promise<void>)[] = [];
  const warnings: string[] = [];
  const warn = (message: string): void => {
    warnings.push(message);
  };
  return {
    open: async () => keep(handles, await openStore({ ...settings, warn })),
    openHeld: async () => {
      const held = await hold();
      handles.push(...held.stores);
      letGo.push(held.letGo);
      return held;
    },
    settings,
    sql,
    tamper,
    warnings,
    dispose: async () => {
      for (const release of letGo.splice(0)) await release();
      await closeAll(handles);
      await drop?.();
    },
  };
}

function keep(handles: StateStore[], store: StateStore): StateStore {
  handles.push(store);
  return store;
}

async function closeAll(handles: StateStore[]): Promise<void> {
  for (const store of handles.splice(0)) await store.close();
}
