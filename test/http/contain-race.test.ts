/** Two servers on one database that are asked to contain the same agent at once. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StateStore } from "../../src/govern/port/store.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { PgProxy } from "../contract/pg-proxy.ts";
import { freshDatabase } from "../support/postgres.ts";
import { type Answer, type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const BOTS = ["early", "slow-a", "slow-b", "slow-c"];
const OPTIONS = {
  manifests:
    "- {tool: thing.make, effect: compensable, permission: p, compensation: {tool: thing.unmake, args: {}}}\n",
  keys: BOTS.map((name) => ({ name, role: "agent" })),
};

let near: TestServer;
let far: TestServer;
let proxy: PgProxy;
/** Is awaited after the far server has read which containment was the last, and before it begins. */
let afterRead: (() => Promise<void>) | undefined;

beforeAll(async () => {
  const { url } = await freshDatabase();
  proxy = await PgProxy.start(url);
  near = await testServer({ ...OPTIONS, store: await openPostgresStore(url, () => {}) });
  const store = await openPostgresStore(proxy.url, () => {});
  far = await testServer({ ...OPTIONS, store: readsSlowly(store) });
  // Servers of one service have one key file.
  far.app.keys = near.app.keys;
  for (const { app } of [near, far])
    app.jobTools = { compensator: async () => {}, stop: app.background.signal };
});
afterAll(() => proxy.stop());

function readsSlowly(store: StateStore): StateStore {
  return new Proxy(store, {
    get(target, name) {
      if (name === "get")
        return async (table: "meta", key: string) => {
          const doc = await target.get(table, key);
          if (table === "meta" && key.startsWith("containment/")) await afterRead?.();
          return doc;
        };
      const member = Reflect.get(target, name) as unknown;
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

async function act(bot: string): Promise<void> {
  await near.call(bot, "POST", "/v1/runs", { run_id: bot, permissions: ["p"] });
  await near.call(bot, "POST", `/v1/runs/${bot}/intents`, { tool: "thing.make", args: {}, reason: "r" });
  await near.call(bot, "POST", `/v1/runs/${bot}/steps/0/outcome`, { status: "succeeded", result: {} });
}

const containBy = (server: TestServer, actor: string): Promise<Answer> =>
  server.call("admin", "POST", "/v1/contain", { actor, reason: "it went mad", confirm: true });

async function ended(id: string): Promise<void> {
  await until(
    async () => (await near.call("auditor", "GET", `/v1/contain/${id}`)).body.job.state === "done",
    "the containment",
  );
}

async function recorded(bot: string): Promise<string[]> {
  const lines = await near.app.core.store.records({ limit: 10_000 });
  return lines
    .map((line) => JSON.parse(line) as { event: string; detail?: string; run_id?: string })
    .filter(({ detail = "", run_id }) => detail.includes(`actor ${bot}`) || run_id === bot)
    .map(({ event }) => event);
}

describe("two containments of one agent at once", () => {
  it(`are one where the other ends between reading and beginning ${verifies("beyond.contain.once")}`, async () => {
    await act("early");
    let first: Answer | undefined;
    afterRead = async () => {
      afterRead = undefined;
      first = await containBy(near, "early");
      await ended(first.body.job.id);
    };
    const second = await containBy(far, "early");
    expect([first?.status, second.status]).toEqual([202, 202]);
    expect(second.body.job).toMatchObject({ id: first?.body.job.id, state: "done" });
    expect((await recorded("early")).filter((event) => event === "contained")).toHaveLength(1);
  });

  it(`are one over a slow link, whichever comes first ${verifies("beyond.contain.once")}`, async () => {
    for (const [i, bot] of BOTS.filter((name) => name.startsWith("slow")).entries()) {
      await act(bot);
      proxy.lag_ms = 40 * (i + 1);
      const servers = i % 2 === 0 ? [near, far] : [far, near];
      const answers = await Promise.all(servers.map((server) => containBy(server, bot)));
      proxy.lag_ms = 0;
      expect(answers.map(({ status }) => status)).toEqual([202, 202]);
      const ids = answers.map(({ body }) => body.job.id as string);
      expect(ids[0]).toBe(ids[1]);
      await ended(ids[0]!);
      const events = await recorded(bot);
      expect(events.filter((event) => event === "contained")).toHaveLength(1);
      expect(events.filter((event) => event === "compensated")).toHaveLength(1);
    }
  });
});

it("halts and containments over a slow link open one incident, and the next one after it was closed", async () => {
  verifies("beyond.incidents.one-open", "beyond.incidents.not-reopened");
  const incidents = async () =>
    (await near.call("auditor", "GET", "/v1/incidents")).body.incidents.filter(
      ({ actor }: { actor: string }) => actor === "halted-bot",
    );
  const halt = (server: TestServer) =>
    server.call("admin", "POST", "/v1/halt", { reason: "it went mad", actor: "halted-bot" });
  proxy.lag_ms = 40;
  const answers = await Promise.all([halt(near), halt(far), halt(near), halt(far)]);
  proxy.lag_ms = 0;
  expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
  const [{ id, causes }, ...others] = await incidents();
  expect([causes.length, others]).toEqual([4, []]);
  const path = `/v1/incidents/${id}`;
  expect((await far.call("operator", "POST", `${path}/notes`, { text: "seen" })).status).toBe(201);
  expect((await far.call("operator", "POST", `${path}/close`, { reason: "known" })).status).toBe(200);
  await far.env.advance(1_000);
  await halt(far);
  expect((await incidents()).map(({ status }: { status: string }) => status)).toEqual(["open", "closed"]);
});
