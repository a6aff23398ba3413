/** What people and their scrapers are shown stays as it was when the service probes itself, on every store. */
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { loadHeaderStatus } from "../../src/console/header-status.ts";
import { BlockedError } from "../../src/library/errors.ts";
import { libraryRun } from "../../src/library/open.ts";
import { CANARY_MANIFESTS, CANARY_RULES } from "../../src/library/probe.ts";
import { ExpiryJob } from "../../src/operations/background/expire.ts";
import { runServerProbe } from "../../src/service/start/probe.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { openStore } from "../../src/store/open.ts";
import { freshDatabase } from "../support/postgres.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const RULES = { manifests: CANARY_MANIFESTS, policy: `version: 1\nrules:\n${CANARY_RULES}` };

/** All series of the service itself but those that measure the ledger, which keeps what the probe did. */
async function shown(server: TestServer) {
  const { text } = await server.call("auditor", "GET", "/metrics");
  const series = text.split("\n").filter((line) => /^svc_(?!ledger_)/.test(line));
  const { requests, by_rule } = (await server.call("auditor", "GET", "/v1/report/oversight")).body;
  const { pending, halts } = await loadHeaderStatus(server.app);
  return { series, requests, by_rule, pending, halts };
}

async function kinds(kind: "files" | "sqlite" | "postgres") {
  const database = kind === "postgres" ? await freshDatabase() : null;
  if (database !== null) afterAll(() => database.drop());
  const data = join(tempDir("probe"), "data");
  return () => openStore({ store: kind, data, database_url: database?.url ?? null, warn: () => {} });
}

describe("metrics, oversight figures and banner", () => {
  it.each(["files", "sqlite", "postgres"] as const)(
    "on %s leave the probe out, also anew and beside",
    async (kind) => {
      verifies("beyond.probe.quiet");
      const open = await kinds(kind);
      const server = await testServer({ ...RULES, store: await open() });
      const before = await shown(server);
      expect(before.series).toContain('svc_approvals{status="expired"} 0');
      expect((await runServerProbe(server.app)).every(({ verdict }) => verdict === "holds")).toBe(true);
      expect(await shown(server)).toEqual(before);
      const beside = await testServer({ ...RULES, store: await open() });
      expect(await shown(beside)).toEqual(before);
      await Promise.all([server.app.close(), beside.app.close()]);
      const anew = await testServer({ ...RULES, store: await open() });
      expect(await shown(anew)).toEqual(before);
      const listed = (await anew.call("auditor", "GET", "/v1/approvals?status=expired")).body.approvals;
      const { approvals, runs } = (await anew.call("auditor", "GET", "/v1/status")).body;
      expect([listed.length, approvals.expired, runs]).toEqual([2, 2, 2]);
    },
  );

  it("leave out what a probe left open that was killed, which still ages", async () => {
    verifies("beyond.probe.quiet");
    const later = "approval: {escalate_after: 1h, escalate_to: [leads]}, reason: the probe expects to wait";
    const policy = RULES.policy.replace("reason: the probe expects to wait", later);
    const server = await testServer({ ...RULES, policy, store: new MemoryStore() });
    const before = await shown(server);
    const run = await libraryRun(server.app, { actor: "svc-probe", permissions: ["probe"] });
    const asked = run.call({ tool: "probe.waiting", args: {}, reason: "svc probe" }, () => ({}));
    await expect(asked).rejects.toBeInstanceOf(BlockedError);
    expect(await shown(server)).toEqual(before);
    const listed = async (status: string) =>
      (await server.call("auditor", "GET", `/v1/approvals?status=${status}`)).body.approvals.length;
    expect(await listed("pending")).toBe(1);
    const sweep = new ExpiryJob(server.app);
    await server.env.advance(2 * 3_600_000);
    expect((await sweep.approvals()).escalated).toEqual([]);
    expect(await listed("escalated")).toBe(1);
    await server.env.advance(25 * 3_600_000);
    await sweep.approvals();
    expect([await listed("escalated"), await listed("expired")]).toEqual([0, 1]);
    expect(await shown(server)).toEqual(before);
  });
});
