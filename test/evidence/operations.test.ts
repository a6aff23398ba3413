import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { loadSettings } from "../../src/config/load.ts";
import { verifyBundle } from "../../src/evidence/bundles/verify-bundle.ts";
import { writeKeyFiles } from "../../src/evidence/key-files.ts";
import { parsePublicKey } from "../../src/evidence/signing.ts";
import type { PrincipalRole } from "../../src/govern/roles.ts";
import type { SvcError } from "../../src/kernel/errors.ts";
import { publishAnchor } from "../../src/operations/evidence/anchors.ts";
import { bundleLedger, bundleRun, evidenceKey, verifyLedger } from "../../src/operations/evidence/bundles.ts";
import { periodReport, runReport, runReportAsPdf } from "../../src/operations/evidence/reports.ts";
import { dispatchOperation } from "../../src/operations/pipeline/dispatch.ts";
import type { DocumentContent, ServiceOperation } from "../../src/operations/pipeline/operation.ts";
import { openApp } from "../../src/service/open-app.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { principal } from "../support/engine.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir, tempFile } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { pdfText } from "./support/pdf.ts";

const keys = tempDir("keys");
let signed: TestServer;
let plain: TestServer;

beforeAll(async () => {
  await writeKeyFiles(join(keys, "k"));
  signed = await testServer({
    config: `signing_key: ${join(keys, "k.key")}\nanchor: {sinks: [{type: file, path: ${join(keys, "a.jsonl")}}]}\negress: {region: eu-3}\n`,
  });
  plain = await testServer();
  for (const s of [signed, plain]) {
    await s.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["crm.read", "mail.send"] });
    await s.call("agent", "POST", "/v1/runs/r/intents", { tool: "crm.get", args: {}, reason: "look" });
    await s.call("agent", "POST", "/v1/runs/r/intents", { tool: "nothing", args: {}, reason: "try" });
    await s.call("agent", "POST", "/v1/runs/r/steps/0/outcome", { status: "succeeded" });
  }
});

function ask(
  s: TestServer,
  op: ServiceOperation,
  input: Record<string, unknown> = {},
  role: PrincipalRole = "auditor",
) {
  const call = {
    app: s.app,
    principal: principal(role, role),
    signal: new AbortController().signal,
  };
  return dispatchOperation(op, call, input);
}

async function textOf(answer: unknown): Promise<string> {
  const { body } = answer as DocumentContent;
  if (typeof body === "string") return body;
  if (body instanceof Uint8Array) return Buffer.from(body).toString("latin1");
  let text = "";
  for await (const part of body) text += part;
  return text;
}

const failure = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error as SvcError,
  );

describe("bundle routes", () => {
  it(`serve bundles that verify with the served key ${verifies(
    "ops.evidence.routes-config-key",
    "ops.evidence.public-key-route",
    "core.route.run-bundle",
    "core.route.ledger-bundle",
    "core.route.evidence-key",
  )}`, async () => {
    const { key_id, public_key } = (await ask(signed, evidenceKey)) as { key_id: string; public_key: string };
    const key = parsePublicKey(public_key, "served");
    expect(key.key_id).toBe(key_id);
    const run = (await ask(signed, bundleRun, { run_id: "r" })) as DocumentContent;
    expect([run.type, run.filename]).toEqual(["application/json; charset=utf-8", "r.bundle.json"]);
    const ledger = (await ask(signed, bundleLedger)) as DocumentContent;
    expect(ledger.filename).toBe("ledger.bundle.json");
    for (const [answer, kind] of [
      [run, "run"],
      [ledger, "ledger"],
    ] as const) {
      const verdict = await verifyBundle(tempFile("b.json", await textOf(answer)), new Map([[key_id, key]]));
      expect(verdict).toMatchObject({ ok: true, report: { kind, count: 3, trust: "trusted" } });
    }
  });

  it(`are served when SVC_SIGNING_KEY names the key ${verifies(
    "ops.evidence.routes-signing-key",
    "core.setting.signing-key",
    "ops.anchoring.interval",
  )}`, async () => {
    const env = { SVC_SIGNING_KEY: join(keys, "k.key") };
    const settings = loadSettings({ flags: {}, env, cwd: plain.folder });
    expect(settings.anchor.interval_ms).toBe(3_600_000);
    const app = await openApp(settings, plain.env, { store: new MemoryStore() });
    const answer = (await ask({ ...plain, app: app as TestServer["app"] }, evidenceKey)) as {
      key_id: string;
    };
    await app.close();
    expect(answer.key_id).toMatch(/^[0-9a-f]{16}$/);
  });

  it("do not know an unknown run", async () => {
    expect(await failure(ask(signed, bundleRun, { run_id: "none" }))).toMatchObject({
      code: "not_found",
    });
  });

  it(`are not there without a signing key ${verifies(
    "ops.evidence.routes-404",
    "ops.error.bundles",
    "core.error.message-bundles",
    "contract.readings.verify-route-needs-key",
  )}`, async () => {
    for (const op of [bundleRun, bundleLedger, evidenceKey, verifyLedger]) {
      const error = await failure(ask(plain, op, op === bundleRun ? { run_id: "r" } : {}));
      expect([op.id, error?.code, error?.message]).toEqual([
        op.id,
        "not_enabled",
        "signed bundles are not enabled on this server",
      ]);
    }
  });

  it(`are for auditors ${verifies("core.route.ledger-verify")}`, async () => {
    for (const op of [bundleLedger, evidenceKey, verifyLedger]) {
      expect((await failure(ask(signed, op, {}, "agent")))?.message).toBe("auditor role required");
    }
  });

  it("answer with an error, not with half a bundle, where the first page is already bad", async () => {
    const { store } = signed.app.core;
    const records = store.records.bind(store);
    store.records = async (query) =>
      (await records(query)).map((line) => line.replace('"seq":1,', '"seq":7,'));
    const error = await failure(ask(signed, bundleLedger));
    const verified = await ask(signed, verifyLedger);
    store.records = records;
    expect(error).toMatchObject({
      code: "corrupt",
      message: expect.stringContaining("does not verify at record 1"),
    });
    expect(verified).toMatchObject({ ok: false, records: 3, first_bad: { seq: 1 } });
  });

  it(`verify the ledger ${verifies("contract.http.ledger-verify")}`, async () => {
    const { hash } = await signed.app.core.store.head();
    const both = await Promise.all([ask(signed, verifyLedger), ask(signed, verifyLedger)]);
    for (const answer of both) expect(answer).toEqual({ ok: true, records: 3, head: hash, first_bad: null });
  });
});

describe("the anchor route", () => {
  it(`publishes on demand, for admins ${verifies("contract.http.anchor", "ops.anchor-route.admin")}`, async () => {
    expect((await failure(ask(signed, publishAnchor, {}, "operator")))?.message).toBe("admin only");
    const answer = (await ask(signed, publishAnchor, {}, "admin")) as {
      anchor: object;
      sinks: object[];
    };
    expect(answer.anchor).toMatchObject({
      format: "svc-anchor",
      records: 3,
      region: "eu-3",
      signature: expect.any(String),
    });
    expect(answer.sinks).toEqual([{ type: "file", target: join(keys, "a.jsonl"), ok: true, error: null }]);
  });

  it(`is a 502 with the whole answer when a sink fails ${verifies(
    "contract.http.anchor-502",
    "ops.anchor-route.502",
    "core.error.502",
  )}`, async () => {
    const { sinks } = signed.app.settings.anchor;
    sinks.push({ type: "file", path: join(keys, "no", "x") });
    const error = await failure(ask(signed, publishAnchor, {}, "admin"));
    sinks.pop();
    expect(error).toMatchObject({
      code: "delivery_failed",
      message: expect.stringContaining("not delivered everywhere"),
    });
    expect(error?.extra).toMatchObject({
      anchor: { records: 3 },
      sinks: [{ ok: true }, { ok: false, error: expect.any(String) }],
    });
  });

  it("is not there without sinks", async () => {
    expect(await failure(ask(plain, publishAnchor, {}, "admin"))).toMatchObject({
      code: "not_enabled",
      message: "no anchor sinks are configured on this server",
    });
  });
});

describe("report routes", () => {
  it(`serve a run's report as a page and as a PDF ${verifies("core.route.report-html", "core.route.report-pdf")}`, async () => {
    const page = (await ask(signed, runReport, { run_id: "r" })) as DocumentContent;
    expect(page.type).toBe("text/html; charset=utf-8");
    expect(await textOf(page)).toContain("<h1>Run report</h1>");
    const pdf = (await ask(signed, runReportAsPdf, { run_id: "r" })) as DocumentContent;
    expect([pdf.type, pdf.filename]).toEqual(["application/pdf", "r.report.pdf"]);
    expect(pdfText(pdf.body as Uint8Array)).toContain("eu-3");
    expect(await failure(ask(signed, runReport, { run_id: "none" }))).toMatchObject({
      code: "not_found",
    });
  });

  it(`serve a period in three formats ${verifies("core.route.period-report", "ops.evidence.period-route")}`, async () => {
    const json = (await ask(signed, periodReport)) as DocumentContent;
    expect(JSON.parse(await textOf(json))).toMatchObject({
      calls: { total: 2, accepted: 1, blocked: 1 },
      region: "eu-3",
    });
    const md = (await ask(signed, periodReport, { since: "1d", format: "md" })) as DocumentContent;
    expect([md.type, (await textOf(md)).slice(0, 15)]).toEqual([
      "text/markdown; charset=utf-8",
      "# Period report",
    ]);
    const html = (await ask(signed, periodReport, {
      since: "2026-01-01",
      format: "html",
    })) as DocumentContent;
    expect(html.type).toBe("text/html; charset=utf-8");
    for (const query of [{ since: "-1d" }, { format: "xml" }, { until: "1d" }]) {
      expect(await failure(ask(signed, periodReport, query))).toMatchObject({ code: "invalid" });
    }
    expect((await failure(ask(signed, periodReport, {}, "agent")))?.message).toBe("auditor role required");
  });
});
