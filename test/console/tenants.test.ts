/** The console of somebody who is bound to a tenant. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { ROUTES } from "../../src/console/routes.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { Client } from "./support/client.ts";
import { type ConsoleServer, consoleServer } from "./support/server.ts";

let s: ConsoleServer;
beforeAll(async () => {
  const bound = (tenant: string, role: string) => ({
    name: `${tenant}-${role}`,
    role,
    tenant,
    tenant_only: true,
  });
  s = await consoleServer({
    keys: ["acme", "globex"].flatMap((tenant) => [bound(tenant, "agent"), bound(tenant, "admin")]),
  });
  for (const tenant of ["acme", "globex"]) {
    const run_id = `${tenant}-run`;
    await s.api(`${tenant}-agent`, "POST", "/v1/runs", {
      run_id,
      permissions: ["pay.refund"],
      reason: `${tenant}!`,
    });
    const refund = { tool: "pay.refund", args: { amount: 900 }, reason: `${tenant} pays` };
    await s.api(`${tenant}-agent`, "POST", `/v1/runs/${run_id}/intents`, refund);
    await s.api(`${tenant}-admin`, "POST", "/v1/halt", { tool: "none.*", reason: `${tenant} halts` });
  }
});
afterAll(() => s.close());

it("tells open pages of the tenant's own doings, and not that a neighbour does anything", async () => {
  verifies("beyond.tenants.news");
  const heard = async (key: string) => {
    const client = new Client(s.url);
    await client.logIn(key);
    const pulse = async () => /data-pulse="(\w+)"/.exec((await client.get("/console/runs")).text)?.[1];
    const cookie = [...client.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const told: string[] = [];
    const stop = new AbortController();
    const answer = await fetch(`${s.url}/console/events`, { headers: { cookie }, signal: stop.signal });
    void (async () => {
      for await (const part of answer.body!.pipeThrough(new TextDecoderStream()))
        for (const [, data] of part.matchAll(/(?<!event: beat\n)data: (\w+)/g)) told.push(data!);
    })().catch(() => {});
    await until(() => told.length > 0, `${key} to hear the first word`);
    return { told, pulse, close: () => stop.abort() };
  };
  const open = (tenant: string, n: number) =>
    s.api(`${tenant}-agent`, "POST", `/v1/runs/${tenant}-run/intents`, {
      ...{ tool: "pay.refund", args: { amount: 900 + n }, reason: "again" },
    });
  const [ours, all] = [await heard("acme-admin"), await heard("admin")];
  try {
    const before = await ours.pulse();
    expect(ours.told).toEqual([before]);
    const known = all.told.length;
    await open("globex", 1);
    await until(() => all.told.length > known, "the whole service's admin to hear of it");
    expect(await ours.pulse()).toBe(before);
    await open("acme", 2);
    await until(() => ours.told.length > 1, "the tenant to hear of its own");
    expect(ours.told).toEqual([before, await ours.pulse()]);
  } finally {
    ours.close();
    all.close();
  }
});

it("shows the tenant's own things on every page", async () => {
  verifies("beyond.tenants.console");
  const client = new Client(s.url);
  await client.logIn("acme-admin");
  const pages = ROUTES.filter(({ method }) => method === "GET").map(({ path }) =>
    `/console${path === "/" ? "" : path}`.replace(":id", "acme-run").replace(":tool", "pay.refund"),
  );
  for (const page of pages) {
    const { status, text } = await client.get(page);
    expect([page, status < 500, text.includes("globex")]).toEqual([page, true, false]);
  }
  expect((await client.get("/console")).text).toContain("acme");
  expect((await client.get("/console/approvals")).text).toContain("acme pays");
  expect((await client.get("/console/runs/globex-run")).status).toBe(404);
  expect((await client.submit("/console/evidence/verify")).status).toBe(403);
});
