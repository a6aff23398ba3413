/** The one place that names concrete stores; a driver is loaded only when it is chosen. */
import { SvcError } from "../kernel/errors.ts";
import type { ReplicaPlace, Store } from "./port.ts";

export const STORE_KINDS = ["files", "sqlite", "postgres"] as const;
export type StoreKind = (typeof STORE_KINDS)[number];

export interface StoreSettings {
  store: StoreKind | "memory";
  /** The data directory of files and sqlite. */
  data: string;
  database_url: string | null;
  /** A replica of that database. */
  replica?: ReplicaPlace | undefined;
  /** Told of what a store repairs or refuses; never of values. */
  warn(message: string, fields?: Record<string, unknown>): void;
}

export async function openStore(settings: StoreSettings): Promise<Store> {
  switch (settings.store) {
    case "memory":
      return new (await import("./memory/store.ts")).MemoryStore();
    case "files":
      return (await import("./files/store.ts")).openFilesStore(settings.data, settings.warn);
    case "sqlite":
      return (await import("./sqlite/store.ts")).openSqliteStore(settings.data, settings.warn);
    case "postgres": {
      if (settings.database_url === null || settings.database_url === "") {
        throw new SvcError(
          "invalid",
          "the postgres store needs SVC_DATABASE_URL (or database_url in svc.config.yaml)",
        );
      }
      return (await import("./postgres/store.ts")).openPostgresStore(
        settings.database_url,
        settings.warn,
        settings.replica,
      );
    }
  }
}
