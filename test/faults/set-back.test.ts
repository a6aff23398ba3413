/**
 * A separate server whose data return to an older state under it, as after a restore that came too early, and one
 * that starts on the rest: no position of the ledger is used twice.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type ServerProcess, svc } from "../support/cli.ts";
import { copyDatabase } from "../support/sqlite-backup.ts";
import { countTrials } from "../support/trials.ts";
import { call, type Place, placeOn, start } from "./place.ts";

type Kind = "files" | "sqlite";

const STEPS = 6;

const ask = (server: ServerProcess, n: number) =>
  call(server.url, "POST", "runs/r/intents", { tool: "crm.get", args: { n }, reason: "look" });

const readiness = async (server: ServerProcess) => (await fetch(`${server.url}/readyz`)).status;

/** A server with half of the steps, what `halfway` does then, and the other half. */
async function halfDone(store: Kind, halfway: (data: string) => unknown) {
  const place = await placeOn(store);
  const server = await start(place);
  await call(server.url, "POST", "runs", { run_id: "r", permissions: ["crm.read"] });
  for (let n = 0; n < STEPS; n++) {
    if (n === STEPS / 2) await halfway(join(place.folder, "data"));
    expect(await ask(server, n)).toMatchObject({ status: 200, body: { decision: "allow", step: n } });
  }
  return { place, server, data: join(place.folder, "data") };
}

async function exported({ flags, folder }: Place): Promise<string> {
  return (await svc(["export", ...flags], { cwd: folder })).out;
}

const OLDER: Record<Kind, { keep(data: string): unknown; putBack(data: string): unknown }> = {
  files: {
    keep: (data) => copyFileSync(join(data, "ledger.jsonl"), join(data, "..", "older")),
    putBack: (data) => writeFileSync(join(data, "ledger.jsonl"), readFileSync(join(data, "..", "older"))),
  },
  sqlite: {
    keep: (data) => copyDatabase(join(data, "svc.db"), join(data, "..", "older")),
    putBack: (data) => copyDatabase(join(data, "..", "older"), join(data, "svc.db")),
  },
};

describe.each(["files", "sqlite"] as const)("a live server on %s whose ledger is an older one", (store) => {
  it("allows nothing from then on, and is not ready", async () => {
    const { keep, putBack } = OLDER[store];
    const { server, data } = await halfDone(store, keep);
    try {
      await putBack(data);
      for (let i = 0; i < 3; i++) {
        expect(await ask(server, i)).toMatchObject({
          status: 503,
          body: { error: expect.stringMatching(/set back/) },
        });
        expect(await readiness(server)).toBe(503);
      }
      expect(await call(server.url, "POST", "runs", { permissions: [] })).toMatchObject({ status: 503 });
      for (const path of ["runs", "runs/r"])
        expect(await call(server.url, "GET", path)).toMatchObject({ status: 503 });
    } finally {
      await server.stop();
    }
    countTrials(store, "older ledger under a live server", 1);
  });
});

describe("a server on files that is started", () => {
  it("on an older ledger alone refuses, until the newest is back", async () => {
    const { keep, putBack } = OLDER.files;
    const { place, server, data } = await halfDone("files", keep);
    await server.stop("SIGKILL");
    const newest = readFileSync(join(data, "ledger.jsonl"));
    await putBack(data);
    const refusing = await start(place);
    expect(await ask(refusing, 0)).toMatchObject({
      status: 503,
      body: { error: expect.stringMatching(/older copy/) },
    });
    expect(await readiness(refusing)).toBe(503);
    await refusing.stop();
    writeFileSync(join(data, "ledger.jsonl"), newest);
    const mended = await start(place);
    expect(await readiness(mended)).toBe(200);
    expect(await ask(mended, STEPS)).toMatchObject({ body: { decision: "allow", step: STEPS } });
    await mended.stop();
    countTrials("files", "older ledger at a start", 1);
  });

  it("on a ledger whose last line was torn continues after the one before", async () => {
    const { place, server, data } = await halfDone("files", () => {});
    await server.stop("SIGKILL");
    const ledger = readFileSync(join(data, "ledger.jsonl"));
    writeFileSync(join(data, "ledger.jsonl"), ledger.subarray(0, ledger.length - 20));
    const again = await start(place);
    expect(await ask(again, 0)).toMatchObject({ body: { decision: "allow", step: STEPS - 1 } });
    await again.stop();
  });
});

describe("a server on sqlite that is started", () => {
  it("on a backup of svc.db alone makes its checkpoint again and continues", async () => {
    const { place, server, data } = await halfDone("sqlite", () => {});
    await copyDatabase(join(data, "svc.db"), join(data, "..", "older"));
    await server.stop("SIGKILL");
    const before = await exported(place);
    rmSync(data, { recursive: true });
    mkdirSync(data);
    copyFileSync(join(data, "..", "older"), join(data, "svc.db"));
    const restored = await start(place);
    expect(await readiness(restored)).toBe(200);
    expect((await call(restored.url, "GET", "runs/r")).body.steps).toHaveLength(STEPS);
    expect(await ask(restored, STEPS)).toMatchObject({ body: { decision: "allow", step: STEPS } });
    expect(existsSync(join(data, "svc.checkpoint"))).toBe(true);
    await restored.stop();
    expect((await exported(place)).startsWith(before)).toBe(true);
  });
});
