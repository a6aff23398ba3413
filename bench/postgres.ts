/** A PostgreSQL for the benchmarks: the one that SVC_TEST_DATABASE_URL names, or one started for the occasion. */
import { freshDatabase, startPostgres } from "../test/support/postgres.ts";

export interface BenchDatabase {
  url: string;
  close(): Promise<void>;
}

export async function openBenchDatabase(): Promise<BenchDatabase> {
  if (process.env["SVC_TEST_DATABASE_URL"]) {
    const { url, drop } = await freshDatabase();
    return { url, close: drop };
  }
  const server = await startPostgres({ fsync: true });
  return { url: server.socketUrl("postgres"), close: () => server.dispose() };
}
