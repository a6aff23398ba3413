/** The PDF of a long run is laid out in a thread: this process draws no line of it. */
import { expect, it, vi } from "vitest";
import type { RunReport } from "../../src/evidence/report/run.ts";
import { drawRunReport } from "../../src/operations/worker/pdf-host.ts";
import { testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const drawn: number[] = [];
vi.mock("../../src/evidence/report/run-pdf.ts", async (load) => {
  const real = await load<typeof import("../../src/evidence/report/run-pdf.ts")>();
  const runReportPdf = (report: RunReport) => {
    drawn.push(report.steps.length);
    return real.runReportPdf(report);
  };
  return { ...real, runReportPdf };
});

it("draws a short report here, and a long one in a thread, with the same pages", async () => {
  verifies("beyond.heavy.pdf-thread");
  const s = await testServer();
  const made = async (run_id: string, calls: number) => {
    await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["crm.read"] });
    for (let i = 0; i < calls; i++)
      await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, { tool: "crm.get", args: {}, reason: "r" });
    const { text } = await s.call("auditor", "GET", `/v1/runs/${run_id}/report.pdf`);
    expect(text.slice(0, 5)).toBe("%PDF-");
    return text.length;
  };
  await made("short", 3);
  expect(drawn).toEqual([3]);
  expect(await made("long", 120)).toBeGreaterThan(10_000);
  expect(drawn).toEqual([3]);
});

it("stops with its request", async () => {
  verifies("beyond.heavy.pdf-thread");
  const steps = Array.from({ length: 200 }, (_, step) => ({ step }));
  const report = { steps, trail: [], outlook: null } as unknown as RunReport;
  await expect(drawRunReport(report, AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
});
