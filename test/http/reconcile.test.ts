/** A client's own account of its calls against the ledger's, over HTTP. */
import { beforeEach, expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const ASKED_MS = Date.UTC(2026, 5, 15, 12);

let s: TestServer;
beforeEach(async () => {
  s = await testServer({
    policy: "version: 1\nrules:\n  - {id: all, match: {tool: crm.get}, action: allow}\n",
  });
  await s.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["crm.read"] });
});

const ask = (ref?: unknown, args: object = {}) =>
  s.call("agent", "POST", "/v1/runs/r/intents", {
    tool: "crm.get",
    args,
    reason: "look",
    ...(ref === undefined ? {} : { ref }),
  });
const call = (ref: string | null, ran = true) => ({ ref, tool: "Bash", at_ms: ASKED_MS, ran });
const reconcile = (who: string, calls: unknown[], run = "r", source = "claude-code") =>
  s.call(who as "agent", "POST", `/v1/runs/${run}/reconcile`, { source, calls });
const records = async (): Promise<Record<string, unknown>[]> =>
  (await s.app.core.store.records({ run_id: "r", limit: 100 })).map((line) => JSON.parse(line));
const alerts = async (): Promise<{ kind: string; run_id: string; message: string }[]> =>
  (await s.call("auditor", "GET", "/v1/alerts")).body.alerts;

it("keeps the ref of a call with its step, outside the hash, and never on the ledger", async () => {
  verifies("beyond.hooks.ref");
  const ref = "toolu_".padEnd(128, "x");
  expect((await ask(ref)).body.decision).toBe("allow");
  expect((await ask()).body.decision).toBe("allow");
  expect((await ask(`${ref}x`)).status).toBe(400);
  expect((await ask("")).status).toBe(400);
  expect((await ask(7)).status).toBe(400);
  const { steps } = (await s.call("agent", "GET", "/v1/runs/r")).body;
  expect(steps[0].args_hash).toBe(steps[1].args_hash);
  expect(JSON.stringify(await records())).not.toContain(ref);
  expect((await reconcile("agent", [call(ref), call(null)])).body).toEqual({
    asked: 2,
    ran: 2,
    ungoverned: [],
    unused: [],
  });
});

it("answers the run's principal and operators, and hides the run from others", async () => {
  verifies("beyond.hooks.reconcile-roles");
  await ask("a");
  expect((await reconcile("agent", [call("a")])).status).toBe(200);
  expect((await reconcile("operator", [call("a")])).status).toBe(200);
  expect((await reconcile("agent2", [call("a")])).status).toBe(404);
  expect((await reconcile("agent", [], "unknown")).status).toBe(404);
  expect((await reconcile("operator", [], "unknown")).status).toBe(404);
  expect([403, 404]).toContain((await reconcile("auditor", [])).status);
  const many = Array.from({ length: 10_001 }, () => call("a", false));
  expect((await reconcile("agent", many)).status).toBe(400);
  expect((await reconcile("agent", many.slice(1))).status).toBe(200);
  expect((await reconcile("agent", [], "r", "Claude Code: 0 ungoverned")).status).toBe(400);
});

it("records the counts and the reporter, and a later equal report does not clear the alert", async () => {
  verifies("beyond.hooks.reconcile", "beyond.hooks.reconciled");
  await ask("a");
  await ask("b");
  expect((await reconcile("agent", [call("a"), call("b")])).status).toBe(200);
  expect((await alerts()).map(({ kind }) => kind)).not.toContain("ungoverned_calls");
  const { body } = await reconcile("agent", [call("a"), call("hidden")]);
  expect(body.ungoverned).toEqual([{ ref: "hidden", tool: "Bash", at_ms: ASKED_MS }]);
  expect(body.unused).toMatchObject([{ step: 1, ref: "b", tool: "crm.get" }]);
  await reconcile("agent", [call("a"), call("b")]);
  expect((await alerts()).filter(({ kind }) => kind === "ungoverned_calls")).toMatchObject([
    { run_id: "r", message: expect.stringContaining("2 asked, 2 ran, 1 ungoverned, 1 unused") },
  ]);
  const written = (await records()).filter(({ event }) => event === "reconciled");
  expect(written).toHaveLength(3);
  expect(written[1]).toMatchObject({
    actor: "agent",
    detail: "claude-code: 2 asked, 2 ran, 1 ungoverned, 1 unused; reported by agent",
  });
  expect(JSON.stringify(written)).not.toContain("hidden");
  await s.env.advance(16 * 60_000);
  expect((await alerts()).map(({ kind }) => kind)).not.toContain("ungoverned_calls");
});
