/** A server whose store opens, locks and reads, and takes no record: it is not ready, until it takes one again. */
import { execFileSync } from "node:child_process";
import pg from "pg";
import { describe, expect, it } from "vitest";
import type { StoreKind } from "../../src/store/open.ts";
import { countTrials } from "../support/trials.ts";
import { call, type Place, placeOn, start } from "./place.ts";

/** Larger than the file that readiness always tries, smaller than what the server has written by then. */
const LIMIT_BYTES = 8_192;

/** Every write beyond that size fails for the process, as `ulimit -f` has it. */
const limitFiles = (pid: number, bytes: number | "unlimited"): void => {
  execFileSync("prlimit", ["--pid", String(pid), `--fsize=${bytes}:unlimited`]);
};

async function sql(place: Place, statement: string): Promise<void> {
  const client = new pg.Client(place.env["SVC_DATABASE_URL"]);
  await client.connect();
  await client.query(statement);
  await client.end();
}

/** How nothing can be recorded, and how it can again. */
const WAYS: Record<StoreKind, { fault: string; block(at: At): unknown; unblock(at: At): unknown }> = {
  files: {
    fault: "file-size limit reached",
    block: ({ pid }) => limitFiles(pid, LIMIT_BYTES),
    unblock: ({ pid }) => limitFiles(pid, "unlimited"),
  },
  sqlite: {
    fault: "file-size limit reached",
    block: ({ pid }) => limitFiles(pid, LIMIT_BYTES),
    unblock: ({ pid }) => limitFiles(pid, "unlimited"),
  },
  postgres: {
    fault: "records refused, all else taken",
    block: ({ place }) =>
      sql(place, "ALTER TABLE svc_ledger ADD CONSTRAINT none CHECK (event = 'none') NOT VALID"),
    unblock: ({ place }) => sql(place, "ALTER TABLE svc_ledger DROP CONSTRAINT none"),
  },
};

interface At {
  place: Place;
  pid: number;
}

describe.each(Object.entries(WAYS))("a server on %s that can record nothing", (store, way) => {
  it("is not ready, and is again when it can", async () => {
    const place = await placeOn(store as StoreKind);
    const server = await start(place);
    const at = { place, pid: server.pid };
    const ask = (n: number) =>
      call(server.url, "POST", "runs/r/intents", { tool: "crm.get", args: { n }, reason: "r".repeat(500) });
    const readiness = async () => (await fetch(`${server.url}/readyz`)).status;
    try {
      await call(server.url, "POST", "runs", { run_id: "r", permissions: ["crm.read"] });
      for (let n = 0; n < 20; n++) expect(await ask(n)).toMatchObject({ body: { decision: "allow" } });
      expect(await readiness()).toBe(200);
      await way.block(at);
      for (let i = 0; i < 3; i++) {
        expect(await ask(i)).toMatchObject({ status: 503, body: { error: expect.any(String) } });
        expect(await readiness()).toBe(503);
        expect(await readiness()).toBe(503);
      }
      expect((await call(server.url, "GET", "runs/r")).body.steps).toHaveLength(20);
      await way.unblock(at);
      expect(await readiness()).toBe(200);
      expect(await ask(20)).toMatchObject({ body: { decision: "allow", step: 20 } });
      expect(await readiness()).toBe(200);
    } finally {
      await server.stop();
    }
    countTrials(store as StoreKind, way.fault, 1);
  });
});
