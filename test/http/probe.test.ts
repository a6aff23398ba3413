/** The probe: what it says of a service that governs, of one that does not, and of one that is not set up. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { evaluateAlerts } from "../../src/alerts/evaluate.ts";
import { registerProbe } from "../../src/cli/commands/agents/probe.ts";
import { loadHeaderStatus } from "../../src/console/header-status.ts";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import { BlockedError } from "../../src/library/errors.ts";
import { libraryRun } from "../../src/library/open.ts";
import {
  CANARY_MANIFESTS,
  CANARY_RULES,
  canaryBehind,
  type ProbeSession,
  runProbe,
} from "../../src/library/probe.ts";
import type { AgentRun as Run } from "../../src/library/run.ts";
import { gatewayProbe } from "../../src/service/start/gateway-probe.ts";
import { runServerProbe } from "../../src/service/start/probe.ts";
import { command } from "../evidence/support/command.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

let server: TestServer;
beforeAll(async () => {
  server = await testServer({ manifests: CANARY_MANIFESTS, policy: `version: 1\nrules:\n${CANARY_RULES}` });
});

const events = async () =>
  (await server.app.core.store.records({ limit: 1_000 })).map(
    (line) => JSON.parse(line) as Record<string, string>,
  );

describe("the probe", () => {
  it("finds that every guarantee holds, on every surface, and records it", async () => {
    verifies("beyond.probe.lines", "beyond.probe.recorded", "beyond.probe.quiet");
    const lines = await runServerProbe(server.app);
    expect(lines.map(({ surface, verdict, reason }) => [surface, verdict, reason])).toEqual([
      ...Array(6).fill(["library", "holds", null]),
      ...Array(6).fill(["http", "holds", null]),
    ]);
    const all = await events();
    expect(all.at(-1)).toMatchObject({
      event: "probed",
      actor: "svc-probe",
      detail: "12 hold, 0 BROKEN, 0 not checked",
    });
    expect(all.filter(({ event }) => event === "halted").map(({ detail }) => detail)).toEqual(
      Array(2).fill(expect.stringMatching(/: actor svc-probe$/)),
    );
    expect((await server.call(null, "GET", "/readyz")).body.probe).toEqual({ age_ms: 0, broken: [] });
    expect(await loadHeaderStatus(server.app)).toMatchObject({ halts: [], pending: 0 });
    expect(await evaluateAlerts(server.app.core, server.app.settings.alerts)).toEqual([]);
    expect((await server.call("auditor", "GET", "/metrics")).text).not.toMatch(
      /svc_decisions_total\{[^}]*\} [1-9]/,
    );
  });

  it.each<[string, (run: Run) => ProbeSession, string[]]>([
    [
      "no refusal is heeded",
      (run) => behind(heedless(run, /^/)),
      ["a denied", "a call that waits", "a halted", "a call without a manifest"],
    ],
    ["a denial is not heeded", (run) => behind(heedless(run, /expects a refusal/)), ["a denied"]],
    ["approval is not waited for", (run) => behind(heedless(run, /expects to wait/)), ["a call that waits"]],
    ["a halt is not read", (run) => behind(heedless(run, /halt/)), ["a halted"]],
    ["no manifest is asked for", (run) => behind(heedless(run, /manifest/)), ["a call without a manifest"]],
    ["an undo is not carried out", (run) => ({ ...behind(run), rollback: async () => {} }), ["an undone"]],
    ["calls are swallowed", (run) => behind(swallowing(run)), ["an allowed"]],
  ])("says BROKEN where %s, by what really ran", async (_name, spoilt, broken) => {
    verifies("beyond.probe.by-what-ran", "beyond.probe.recorded");
    const options = { actor: "svc-probe", permissions: ["probe"] };
    const lines = await runProbe(server.app, [
      {
        name: "library",
        open: async () => spoilt(await libraryRun(server.app, options)),
      },
    ]);
    const found = lines.filter(({ verdict }) => verdict === "BROKEN").map(({ guarantee }) => guarantee);
    expect(found.map((text) => broken.find((start) => text.startsWith(start)))).toEqual(broken);
    const alerts = await evaluateAlerts(server.app.core, server.app.settings.alerts);
    expect(alerts.map(({ kind }) => kind)).toContain("probe_failed");
    expect((await server.call(null, "GET", "/readyz")).body.probe.broken).toHaveLength(broken.length);
  });

  const behind = (run: Run) => canaryBehind(server.app, run);

  /** A library that asks and, refused for such a reason, still makes the call. */
  function heedless(run: Run, why: RegExp): Run {
    return Object.assign(Object.create(run), {
      call: (intent: never, execute: (step: number) => Promise<JsonValue>) =>
        run.call(intent, execute).catch((error: unknown) => {
          if (error instanceof BlockedError && why.test(error.reasons.join("; "))) return execute(0);
          throw error;
        }),
    });
  }
  /** One that says that it ran and did not. */
  function swallowing(run: Run): Run {
    return Object.assign(Object.create(run), { call: async () => ({}) });
  }

  it("says why a canary is refused or has to wait, and leaves nothing for people to decide", async () => {
    verifies("beyond.probe.quiet", "beyond.probe.reason");
    const rules = (more: string) => `version: 1\nrules:\n${CANARY_RULES}${more}`;
    const asking = await testServer({
      manifests: CANARY_MANIFESTS,
      policy: `${rules("  - {id: all, action: require_approval, reason: all wait}\n")}approvals: {flood: {max: 1, window: 1h}}\n`,
    });
    const waited = await runServerProbe(asking.app);
    expect(waited[0]).toMatchObject({ verdict: "not checked", reason: expect.stringContaining("all wait") });
    expect(await loadHeaderStatus(asking.app)).toMatchObject({ pending: 0 });
    expect(await evaluateAlerts(asking.app.core, asking.app.settings.alerts)).toEqual([]);
    const shut = await testServer({
      manifests: CANARY_MANIFESTS,
      policy: rules("  - {id: all, action: deny, reason: shut today}\n"),
    });
    const refused = (await runServerProbe(shut.app)).filter(({ verdict }) => verdict === "not checked");
    expect(refused.map(({ guarantee, reason }) => [guarantee, reason]).slice(0, 2)).toEqual([
      ["an allowed call runs", "shut today"],
      ["a call that waits for approval does not run", "the probe expects to wait; shut today"],
    ]);
  });

  it("drives a canary behind the gateway, where upstreams are configured", async () => {
    verifies("beyond.probe.gateway");
    const behind = await testServer({
      manifests: CANARY_MANIFESTS,
      policy: `version: 1\nrules:\n${CANARY_RULES}`,
      config: "upstreams: [{name: files, command: no-such-program}]\n",
    });
    const lines = await runProbe(behind.app, gatewayProbe(behind.app));
    expect(lines.map(({ surface, verdict, reason }) => [surface, verdict, reason])).toEqual(
      Array(6).fill(["gateway", "holds", null]),
    );
    const records = (await behind.app.core.store.records({ limit: 1_000 })).map((line) => JSON.parse(line));
    expect(records.filter(({ event }) => event === "compensated")).toHaveLength(3);
    expect(records.filter(({ tool }) => tool === "probe.unmanifested")).toMatchObject([{ event: "blocked" }]);
    expect((await behind.call("auditor", "GET", "/v1/approvals")).body.approvals).toMatchObject([
      { tool: "probe.waiting", status: "expired", note: "withdrawn" },
    ]);
    const beside = await runServerProbe(behind.app);
    expect(beside.at(-1)).toMatchObject({ surface: "gateway", verdict: "not checked" });
    expect(gatewayProbe(server.app)).toEqual([]);
  });

  it("on the command line names missing setup, and drafts it", async () => {
    verifies("beyond.probe.init", "beyond.probe.lines");
    const cwd = tempDir("probe");
    const run = (...argv: string[]) => command(registerProbe, ["probe", ...argv], { cwd });
    const drafted = await run("init");
    expect([drafted.code, drafted.out]).toEqual([0, expect.stringContaining("svc-probe-waiting")]);
    expect(readFileSync(join(cwd, "svc-probe.yaml"), "utf8")).toMatch(
      /^# yaml-language-server: \$schema=.*\n/,
    );
    expect(readFileSync(join(cwd, "svc-probe.yaml"), "utf8")).toContain(`\n${CANARY_MANIFESTS}`);
    expect((await run("init")).err).toContain("not overwritten");
    const bare = await run("-d", join(cwd, "data"));
    expect(bare.code).toBe(2);
    expect(bare.out).toMatch(/http +a denied call does not run +not checked: the canary is not set up/);
    expect(bare.out).toMatch(/library +a call without a manifest does not run +holds/);
    const half = await run("-d", join(cwd, "data"), "-m", "svc-probe.yaml", "--json");
    const { lines } = JSON.parse(half.out) as { lines: { guarantee: string; verdict: string }[] };
    const verdicts = lines.slice(0, 6).map(({ verdict }) => verdict);
    expect(verdicts).toEqual(["holds", "not checked", "not checked", "holds", "holds", "holds"]);
    expect(half.code).toBe(2);
  });
});
