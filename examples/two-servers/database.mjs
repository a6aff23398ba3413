/** The database of the example: the one that DATABASE_URL names, or a throwaway server of this repository's tests. */
export async function database() {
  if (process.env.DATABASE_URL) return { url: process.env.DATABASE_URL, drop: async () => {} };
  const server = await throwaway().catch((error) => {
    throw new Error("no PostgreSQL could be started here; name one with DATABASE_URL", { cause: error });
  });
  return { url: server.url(), drop: () => server.dispose() };
}

async function throwaway() {
  const { register } = await import("tsx/esm/api");
  register();
  const { startPostgres } = await import("../../test/support/postgres.ts");
  return startPostgres();
}
