/** Opens the configured store. The only module that names concrete stores; each driver loads only when it is chosen. */

import type { ReplicaConfig, StateStore } from "../govern/port/store.ts";
import { SvcError } from "../kernel/errors.ts";

export const STORE_KINDS = ["files", "sqlite", "postgres"] as const;
export type StoreKind = (typeof STORE_KINDS)[number];

export interface StoreSettings {
  store: StoreKind | "memory";
  /** The data directory of files and sqlite. */
  data: string;
  database_url: string | null;
  /** A replica of that database. */
  replica?: ReplicaConfig | undefined;
  /** Reports repairs and refusals of a store, never values. */
  warn(message: string, fields?: Record<string, unknown>): void;
}

/** Opens the ledger of a database read-only: creates nothing, locks nothing, and also works on a standby. */
export async function openDatabaseLedger(
  settings: Pick<StoreSettings, "database_url">,
): Promise<Pick<StateStore, "head" | "records" | "close">> {
  return new (await import("./postgres/reader.ts")).PgReader(databaseUrl(settings));
}

function databaseUrl({ database_url }: Pick<StoreSettings, "database_url">): string {
  if (database_url !== null && database_url !== "") return database_url;
  throw new SvcError(
    "invalid",
    "the postgres store needs SVC_DATABASE_URL (or database_url in svc.config.yaml)",
  );
}

export async function openStore(settings: StoreSettings): Promise<StateStore> {
  switch (settings.store) {
    case "memory":
      return new (await import("./memory/store.ts")).MemoryStore();
    case "files":
      return (await import("./files/store.ts")).openFilesStore(settings.data, settings.warn);
    case "sqlite":
      return (await import("./sqlite/store.ts")).openSqliteStore(settings.data, settings.warn);
    case "postgres": {
      const url = databaseUrl(settings);
      return (await import("./postgres/store.ts")).openPostgresStore(url, settings.warn, settings.replica);
    }
  }
}

/** Lock between processes, which the operating system releases when its holder ends. */
export async function openFileLock(path: string) {
  const [{ FileLock }, { nodeDisk }] = await Promise.all([
    import("./files/lock.ts"),
    import("./journal/disk.ts"),
  ]);
  return new FileLock(nodeDisk, path);
}
