/** After an undo that failed, no surface reports success: one failing compensator, seen through every surface. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loggedIn } from "../console/support/client.ts";
import { type ConsoleServer, consoleServer } from "../console/support/server.ts";
import { pdfText } from "../evidence/support/pdf.ts";
import { tempDir } from "../support/tmp.ts";

const folder = tempDir("failing");
const script = join(folder, "fail.mjs");
writeFileSync(
  script,
  "process.stdin.resume().on('end', () => { console.error('no such contact'); process.exit(3); });",
);

let s: ConsoleServer;
const ok = async (key: string, method: string, path: string, body?: unknown) => {
  const answer = await s.api(key, method, path, body);
  expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300);
  return answer.body;
};

async function rolledBack(): Promise<void> {
  await ok("operator", "POST", "/v1/runs/r/rollback", { confirm: true, retries: 1 });
  await expect
    .poll(async () => (await ok("auditor", "GET", "/v1/runs/r/rollback")).job.state, { timeout: 60_000 })
    .toBe("done");
}

beforeAll(async () => {
  s = await consoleServer({
    config: `console: login\nrollback: {compensator_cmd: "${process.execPath} ${script}"}\n`,
  });
  await ok("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["crm.write"] });
  await ok("agent", "POST", "/v1/runs/r/intents", { tool: "crm.create", args: {}, reason: "r" });
  await ok("agent", "POST", "/v1/runs/r/steps/0/outcome", { status: "succeeded", result: { id: 1 } });
});
afterAll(() => s.close());

it("is fully reversible before anything was tried", async () => {
  const { actions, fully_reversible } = await ok("auditor", "GET", "/v1/runs/r/plan");
  expect(fully_reversible).toBe(true);
  expect(actions[0]).not.toHaveProperty("last_error");
  const page = await (await loggedIn(s.url, "auditor")).get("/console/runs/r");
  expect(page.text).toContain("fully reversible");
});

it("says of a failed undo that it failed: plan, console, page and PDF", async () => {
  await rolledBack();
  await rolledBack();
  const plan = await ok("auditor", "GET", "/v1/runs/r/plan");
  // By definition the flag assumes that each compensation succeeds. The result of the last attempt is shown next to it.
  expect(plan.fully_reversible).toBe(true);
  expect(plan.actions[0]).toMatchObject({
    kind: "compensate",
    last_error: expect.stringContaining("no such contact"),
  });
  const page = (await (await loggedIn(s.url, "auditor")).get("/console/runs/r")).text;
  const html = await ok("auditor", "GET", "/v1/runs/r/report");
  const pdf = await fetch(`${s.url}/v1/runs/r/report.pdf`, { headers: { authorization: "Bearer auditor" } });
  const text = pdfText(new Uint8Array(await pdf.arrayBuffer()));
  for (const [where, shown] of Object.entries({ page, html, text: text.replaceAll(/\s+/g, " ") })) {
    expect(shown, where).toMatch(/reversible only if 1 undo that failed succeeds this time/i);
    expect(shown, where).not.toMatch(/fully reversible/i);
    expect(shown, where).toContain("no such contact");
  }
});

it("is one failed undo in the period report, though it was tried twice", async () => {
  const report = await ok("auditor", "GET", "/v1/report?since=1d&format=json");
  expect(report.rollbacks).toMatchObject({ begun: 1, compensated: 0, failed: 1 });
});
