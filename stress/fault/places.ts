/** Fresh, empty places for stores, in one temporary folder and one PostgreSQL; both go with the run. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StoreKind } from "../../src/store/open.ts";
import { PgServer } from "../../test/support/pg-server.ts";
import { type FreshDatabase, freshDatabase } from "../../test/support/postgres.ts";
import type { Place } from "./protocol.ts";

export interface OwnedPlace extends Place {
  dispose(): Promise<void>;
}

export class Places {
  private readonly folder = mkdtempSync(join(tmpdir(), "svc-proof-"));
  private server: PgServer | undefined;

  async make(store: StoreKind): Promise<OwnedPlace> {
    if (store === "postgres") return this.database();
    const data = mkdtempSync(join(this.folder, `${store}-`));
    const dispose = async (): Promise<void> => rmSync(data, { recursive: true, force: true });
    return { store, data, database_url: null, dispose };
  }

  /** The server behind the postgres places; syncing to disk for real, as a deployment would. */
  async postgres(): Promise<PgServer> {
    this.server ??= await PgServer.create({ fsync: true });
    return this.server;
  }

  async close(): Promise<void> {
    await this.server?.dispose();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async database(): Promise<OwnedPlace> {
    const { url, drop }: FreshDatabase = await freshDatabase(await this.postgres());
    return { store: "postgres", data: "", database_url: url, dispose: drop };
  }
}
