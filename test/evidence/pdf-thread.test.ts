/** The PDF of a long run is laid out in a thread: this process draws no line of it. */
import { expect, it } from "vitest";
import type { ReportStep, RunReport } from "../../src/evidence/report/run.ts";
import { runReportPdf } from "../../src/evidence/report/run-pdf.ts";
import { drawPdf } from "../../src/operations/pdf/host.ts";
import { testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const never = new AbortController().signal;

/** A report whose reasons are text only once they are written as JSON, so that no layout here can draw them. */
function report(calls: number): RunReport {
  const drawn = () => {
    throw new Error("drawn here");
  };
  const reason = { toJSON: () => "because", toString: drawn } as unknown as string;
  const steps = Array.from({ length: calls }, (_, step): ReportStep => {
    const words = { tool: "crm.get", effect: "read", status: "succeeded", reason, error: null };
    const facts = { manifest_version: "1", risk_score: 0, intended_ms: 0, finished_ms: 0, unverified: false };
    return { step, ...words, ...facts };
  });
  const run = { actor: "a", mode: "enforce", tenant: null, environment: null, reason: null };
  return {
    run_id: "r",
    generated_ms: 0,
    version: "0",
    region: null,
    policy: "p",
    ledger: { records: 0, head: "0".repeat(64) },
    without: null,
    run: { ...run, created_ms: 0, permissions: [], seal: "s" },
    steps,
    outlook: null,
    trail: [],
    problem: null,
  };
}

it("draws a report in a thread", async () => {
  verifies("beyond.heavy.pdf-thread");
  await expect(runReportPdf(report(200))).rejects.toThrow("drawn here");
  const pdf = await drawPdf("run", report(200), never);
  expect(Buffer.from(pdf.slice(0, 5)).toString()).toBe("%PDF-");
});

it("is what the route answers", async () => {
  verifies("beyond.heavy.pdf-thread");
  const s = await testServer();
  await s.call("agent", "POST", "/v1/runs", { run_id: "long", permissions: ["crm.read"] });
  for (let i = 0; i < 120; i++)
    await s.call("agent", "POST", "/v1/runs/long/intents", { tool: "crm.get", args: {}, reason: "r" });
  const { text } = await s.call("auditor", "GET", "/v1/runs/long/report.pdf");
  expect(text.slice(0, 5)).toBe("%PDF-");
});

it("stops with its request", async () => {
  verifies("beyond.heavy.pdf-thread");
  await expect(drawPdf("run", report(200), AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
});
