/**
 * A database that returns to an older state under live servers: restored from a backup, or taken over by a standby
 * that lagged behind. A caller that got a record must not see another one with its number.
 */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { AcknowledgedHead } from "../../src/store/postgres/acknowledged-head.ts";
import { CommitListener } from "../../src/store/postgres/connect/listener.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { append } from "../contract/samples.ts";
import { backUp } from "../support/pg-backup.ts";
import { freshDatabase } from "../support/postgres.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { countTrials } from "../support/trials.ts";

async function serverOn(url: string): Promise<TestServer & { warnings: string[] }> {
  const warnings: string[] = [];
  const store = await openPostgresStore(url, (message) => warnings.push(message));
  return Object.assign(await testServer({ store }), { warnings });
}

const RUN = { run_id: "r", permissions: ["crm.read"] };
const ask = ({ call }: TestServer) =>
  call("agent", "POST", "/v1/runs/r/intents", { tool: "crm.get", args: { id: 1 }, reason: "look" });
const ready = ({ call }: TestServer) => call(null, "GET", "/readyz");

/** Servers that were thrown out find their way back by themselves; what they answer then is what counts. */
async function settled<T extends { status: number; text: string }>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    const answer = await attempt();
    if (!/cannot be reached|PostgreSQL answered/.test(answer.text)) return answer;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function database(): Promise<string> {
  const { url, drop } = await freshDatabase();
  onTestFinished(drop);
  return url;
}

describe("a PostgreSQL that is set back under a live server", () => {
  it("gets no further decision, until the reported records are there again", async () => {
    const url = await database();
    const server = await serverOn(url);
    expect(await server.call("agent", "POST", "/v1/runs", RUN)).toMatchObject({ status: 201 });
    expect(await ask(server)).toMatchObject({ status: 200, body: { decision: "allow", step: 0 } });
    const older = await backUp(url);
    for (const step of [1, 2])
      expect(await settled(() => ask(server))).toMatchObject({ status: 200, body: { step } });
    const newer = await backUp(url);
    await older.restore();

    const refused = { status: 503, body: { error: expect.stringMatching(/record 2 was acknowledged/) } };
    expect(await settled(() => ask(server))).toMatchObject(refused);
    expect(await ready(server)).toMatchObject({ status: 503, body: { ok: false } });
    expect(await ask(server)).toMatchObject(refused);
    expect(server.warnings.filter((warning) => /set back/.test(warning))).toHaveLength(1);
    const status = await settled(() => server.call("auditor", "GET", "/v1/runs/r"));
    expect(status).toMatchObject({ status: 200, body: { steps: [{ step: 0 }] } });

    await newer.restore();
    expect(await settled(() => ask(server))).toMatchObject({ status: 200, body: { step: 3 } });
    expect(await ready(server)).toMatchObject({ status: 200 });
    countTrials("postgres", "database set back under a live server", 1);
  });

  it("is refused although somebody who knew nothing has gone on from there, further than before", async () => {
    const url = await database();
    const server = await serverOn(url);
    await server.call("agent", "POST", "/v1/runs", RUN);
    const older = await backUp(url);
    expect(await settled(() => ask(server))).toMatchObject({ status: 200 });
    await older.restore();
    const newcomer = await openPostgresStore(url, () => {});
    onTestFinished(() => newcomer.close());
    for (let i = 0; i < 3; i++) await append(newcomer);
    expect(await settled(() => ask(server))).toMatchObject({
      status: 503,
      body: { error: expect.stringMatching(/record 0 was acknowledged/) },
    });
    expect(await newcomer.head()).toMatchObject({ records: 3 });
    countTrials("postgres", "database set back and gone on with", 1);
  });

  it("is refused by a server that knows another server's answers", async () => {
    const url = await database();
    const writing = await openPostgresStore(url, () => {});
    onTestFinished(() => writing.close());
    const acknowledged = new AcknowledgedHead();
    const listener = new CommitListener(url, { acknowledged, isOwn: () => false, wake: () => {} });
    await listener.start();
    onTestFinished(() => listener.close());
    await append(writing);
    const last = await append(writing);
    await vi.waitFor(() => expect(acknowledged.newest).toEqual({ records: 2, hash: last.hash }));
  });

  it("is refused by a server that had not written since it started", async () => {
    const url = await database();
    const writing = await openPostgresStore(url, () => {});
    onTestFinished(() => writing.close());
    const older = await backUp(url);
    for (;;) {
      const done = await append(writing).catch(() => undefined);
      if (done !== undefined) break;
    }
    const server = await serverOn(url);
    await older.restore();
    expect(await settled(() => ready(server))).toMatchObject({
      status: 503,
      text: expect.stringMatching(/set back/),
    });
  });
});
