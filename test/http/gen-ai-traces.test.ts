/** Traces as a collector gets them: OpenTelemetry's names for a tool's execution, and a link to the caller's trace. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { traceId } from "../../src/telemetry/spans.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

interface Span {
  name: string;
  traceId: string;
  attributes: { key: string; value: { stringValue?: string } }[];
  links: { traceId: string; spanId: string; flags: number }[];
}
const spans: Span[] = [];
let text = "";
const collector = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (part: string) => {
    body += part;
  });
  request.on("end", () => {
    text += body;
    for (const { scopeSpans } of JSON.parse(body).resourceSpans)
      for (const one of scopeSpans) spans.push(...one.spans);
    response.end("{}");
  });
});
let server: TestServer;

beforeAll(async () => {
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
  const { port } = collector.address() as AddressInfo;
  server = await testServer({ config: `otlp: {endpoint: "http://127.0.0.1:${port}"}\n` });
});
afterAll(() => void collector.close());

it("name a tool's execution as the conventions do, and link to the caller's trace", async () => {
  verifies("beyond.traces.gen-ai", "beyond.traces.link");
  const theirs = "4bf92f3577b34da6a3ce929d0e0e4736";
  const call = (path: string, body: object, traceparent?: string) =>
    server.call("agent", "POST", `/v1/runs${path}`, body, traceparent === undefined ? {} : { traceparent });
  await call("", { run_id: "r", permissions: ["crm.read"] });
  const asked = { tool: "crm.get", args: { secret: "hunter2" }, reason: "look" };
  await call("/r/intents", asked, `00-${theirs}-00f067aa0ba902b7-01`);
  await call("/r/steps/0/outcome", { status: "failed", error: "gone" });
  await call("/r/intents", asked, "nonsense");
  await call("/r/steps/1/outcome", { status: "succeeded", result: { secret: "hunter2" } });
  await until(() => {
    server.env.advance(5_000);
    return spans.filter(({ name }) => name === "execute_tool crm.get").length === 2;
  }, "both spans");
  const [failed, good] = spans.filter(({ name }) => name.startsWith("execute_tool")) as [Span, Span];
  const attributes = Object.fromEntries(failed.attributes.map(({ key, value }) => [key, value.stringValue]));
  expect(attributes).toMatchObject({
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "crm.get",
    "gen_ai.tool.call.id": "r/0",
    "gen_ai.conversation.id": "r",
    "gen_ai.agent.name": "agent",
    "error.type": "failed",
    "svc.run_id": "r",
    "svc.tool": "crm.get",
  });
  expect(failed.links).toEqual([
    expect.objectContaining({ traceId: theirs, spanId: "00f067aa0ba902b7", flags: 0x301 }),
  ]);
  expect(failed.traceId).toBe(traceId({ run_id: "r", hash: "" }));
  expect([good.links, good.traceId]).toEqual([[], failed.traceId]);
  expect(good.attributes.some(({ key }) => key === "error.type")).toBe(false);
  expect(text).not.toContain("hunter2");
});
