/** Reports on paper: a period's figures, bars and tables, and who decided what in a run. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { registerReport } from "../../src/cli/commands/evidence/report.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { command } from "./support/command.ts";
import { pdfText } from "./support/pdf.ts";

let server: TestServer;
let env: Record<string, string>;

beforeAll(async () => {
  server = await testServer({
    policy: "version: 1\nrules:\n  - {id: ask, match: {tool: mail.send}, action: require_approval}\n",
  });
  const intent = { tool: "mail.send", args: { to: 1 }, reason: "tell them" };
  await server.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["mail.send", "crm.read"] });
  await server.call("agent", "POST", "/v1/runs/r/intents", { tool: "crm.get", args: {}, reason: "look" });
  const { text } = await server.call("agent", "POST", "/v1/runs/r/intents", intent);
  const id = /apr_[0-9a-f-]{36}/.exec(text)![0];
  await server.call("approver", "POST", `/v1/approvals/${id}/approve`, { note: "seen" });
  const url = await server.http.listen({ port: 0, host: "127.0.0.1" });
  env = { SVC_SERVER: url, SVC_TOKEN: "auditor" };
});

describe("reports on paper", () => {
  it("write a period as a PDF if the file or the format asks for one", async () => {
    verifies("beyond.paper.period");
    const cwd = tempDir("paper");
    const run = (...argv: string[]) => command(registerReport, ["report", ...argv], { cwd, env });
    expect(await run("--since", "7d", "--out", "period.pdf")).toMatchObject({ code: 0 });
    const file = readFileSync(join(cwd, "period.pdf"));
    expect(file.subarray(0, 5).toString()).toBe("%PDF-");
    const text = await pdfText(file);
    for (const words of [
      "Period report",
      "Calls per day",
      "mail.send",
      "red and striped: blocked",
      "retry after it is approved",
      "Page 1 of",
    ])
      expect(text).toContain(words);
    expect((await run("--since", "7d", "--format", "pdf")).err).toContain("--out");
    const over = await server.call("auditor", "GET", "/v1/report?since=7d&format=pdf");
    expect([over.status, over.headers["content-type"]]).toEqual([200, "application/pdf"]);
  });

  it("say in a run's PDF who approved when, and under which policy", async () => {
    verifies("beyond.paper.run");
    const { http } = server;
    const answer = await http.inject({
      url: "/v1/runs/r/report.pdf",
      headers: { authorization: "Bearer auditor" },
    });
    const text = await pdfText(answer.rawPayload);
    for (const words of ["Approvals", "approved by approver", "Active policy"]) expect(text).toContain(words);
  });
});
