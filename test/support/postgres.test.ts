import { chmodSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, it, onTestFinished } from "vitest";
import { assertOthersMayEnter } from "./pg-binaries.ts";
import { freshDatabase, startPostgres } from "./postgres.ts";
import { tempDir } from "./tmp.ts";
import { aMoment } from "./until.ts";

async function ask(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** The processes that work in a folder, as every backend does in its server's. */
function workingIn(folder: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === folder;
    } catch {
      // No process, or one that has ended.
      return false;
    }
  });
}

describe("freshDatabase", () => {
  it("gives each caller an empty database, and drops it with its users", async () => {
    const [one, two] = await Promise.all([freshDatabase(), freshDatabase()]);
    expect(one.name).not.toBe(two.name);
    await ask(one.url, "CREATE TABLE t (a int)");
    expect(await ask(two.url, "SELECT to_regclass('t') AS t")).toEqual([{ t: null }]);
    const client = new pg.Client(one.url);
    client.on("error", () => {});
    await client.connect();
    await Promise.all([one.drop(), two.drop()]);
    await expect(ask(one.url, "SELECT 1")).rejects.toThrow("does not exist");
  });
});

describe("a private server", () => {
  it("freezes, thaws, dies and comes back with its data", async () => {
    const server = await startPostgres();
    onTestFinished(() => server.dispose());
    await ask(server.url(), "CREATE TABLE kept AS SELECT 42 AS a");

    server.pause();
    let answered = false;
    const late = ask(server.socketUrl(), "SELECT a FROM kept").then((rows) => {
      answered = true;
      return rows;
    });
    await aMoment(100);
    expect(answered).toBe(false);
    server.resume();
    expect(await late).toEqual([{ a: 42 }]);

    for (const mode of ["kill", "immediate", "fast", "smart"] as const) {
      await server.stop(mode);
      await expect(ask(server.url(), "SELECT 1")).rejects.toThrow();
      await server.start();
      expect(await ask(server.url(), "SELECT a FROM kept")).toEqual([{ a: 42 }]);
    }
  });

  it.skipIf(process.platform !== "linux")(
    "leaves nobody behind when it is killed while clients come and go",
    async () => {
      const server = await startPostgres();
      onTestFinished(() => server.dispose());
      // A backend that computes does not notice that its server is gone.
      const BUSY = "SELECT count(*) FROM generate_series(1, 300000)";
      let over = false;
      const knocking = Array.from({ length: 16 }, async () => {
        while (!over) await ask(server.url(), BUSY).catch(() => aMoment(1));
      });
      for (let round = 0; round < 5; round++) {
        await ask(server.url(), "SELECT 1");
        await server.stop("kill");
        expect(workingIn(join(server.socketDir, "data"))).toEqual([]);
        await server.start();
      }
      over = true;
      await Promise.all(knocking);
    },
  );

  it.skipIf(process.getuid?.() !== 0)("says what to do when nobody may enter its folder", () => {
    const folder = tempDir();
    chmodSync(folder, 0o700);
    expect(() => assertOthersMayEnter(join(folder, "postgres"))).toThrow(`chmod o+x ${folder}`);
  });
});
