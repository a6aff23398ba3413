/** The gateway's settings: its address, its waits, and the work that continues concurrently. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { Client as OlderClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OlderTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterEach, describe, expect, it, vi } from "vitest";
import { loadSettings } from "../../src/config/load.ts";
import { writeKeyFiles } from "../../src/evidence/key-files.ts";
import { RequestCorrelator } from "../../src/gateway/upstream/correlator.ts";
import { freePort } from "../support/ports.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { call, fakeUpstream, testGateway, until } from "./support/gateway.ts";

const reachable = (host: string, port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect({ host, port });
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });

describe("listen", () => {
  it(`is a host and a port, and those alone are served ${verifies("core.gateway.config-listen")}`, async () => {
    const port = await freePort("0.0.0.0");
    const g = await testGateway({ config: { listen: { host: "127.0.0.2", port } } });
    expect(g.url).toBe(`http://127.0.0.2:${port}`);
    expect((await call(await g.connect("agent"), "echo", { a: 1 }))._meta["svc/decision"]).toBe("allow");
    expect(await reachable("127.0.0.2", port)).toBe(true);
    expect(await reachable("127.0.0.1", port)).toBe(false);
  });
});

describe("timeout", () => {
  afterEach(() => vi.useRealTimers());

  it(`is a minute for an upstream that sets none ${verifies("contract.gateway.timeout")}`, async () => {
    const folder = tempDir("timeout");
    const upstreams = [fakeUpstream(), fakeUpstream({ name: "quick", timeout: "250ms" })];
    writeFileSync(join(folder, "svc.config.yaml"), JSON.stringify({ upstreams }));
    const { upstreams: read } = loadSettings({ flags: {}, env: {}, cwd: folder });
    expect(read.map(({ timeout_ms }) => timeout_ms)).toEqual([60_000, 250]);

    vi.useFakeTimers();
    const sent: string[] = [];
    const silent = async (message: object) => void sent.push("method" in message ? `${message.method}` : "");
    let ended: unknown = null;
    const asked = { method: "tools/call", params: {}, timeout_ms: read[0]!.timeout_ms };
    new RequestCorrelator().ask(silent, asked).catch((error: unknown) => {
      ended = error;
    });
    await vi.advanceTimersByTimeAsync(59_999);
    expect([ended, sent]).toEqual([null, ["tools/call"]]);
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toMatchObject({ message: "the call timed out" });
    expect(sent).toEqual(["tools/call", "notifications/cancelled"]);
  });

  it("of one upstream is its own", async () => {
    const upstreams = [
      fakeUpstream({ name: "quick", namespace: true, timeout: "250ms" }),
      fakeUpstream({ name: "patient", namespace: true }),
    ];
    const manifests = ["quick.slow", "patient.slow"]
      .map((tool) => `- {tool: ${tool}, effect: idempotent, permission: p}\n`)
      .join("");
    const g = await testGateway({ upstreams, manifests });
    const client = await g.connect("agent");
    const [quick, patient] = await Promise.all([
      call(client, "quick.slow", { ms: 1_000 }),
      call(client, "patient.slow", { ms: 1_000 }),
    ]);
    expect(quick.structuredContent).toEqual({
      status: "uncertain",
      error: "upstream quick did not answer within 250 ms",
    });
    expect(patient.isError).toBeUndefined();
  });
});

describe("anchor", () => {
  it(`is published when the gateway starts, and at every interval ${verifies("ops.anchoring.gateway")}`, async () => {
    const folder = tempDir("anchors");
    await writeKeyFiles(join(folder, "k"));
    const path = join(folder, "anchors.jsonl");
    const g = await testGateway({
      config: {
        signing_key: join(folder, "k.key"),
        anchor: { sinks: [{ type: "file", path }], interval: "1s" },
      },
    });
    // Whole lines alone: the file is there before its first one is, and a line may be half written.
    const anchors = () =>
      existsSync(path)
        ? readFileSync(path, "utf8")
            .split("\n")
            .slice(0, -1)
            .map((line) => JSON.parse(line))
        : [];
    await until(() => anchors().length > 0, "the first anchor");
    await call(await g.connect("agent"), "echo", { a: 1 });
    const { hash } = (await g.trail()).at(-1)!;
    await until(() => anchors().at(-1).head === hash, "an anchor of what was done since");
    expect(anchors()[0]).toMatchObject({ format: "svc-anchor", version: 1, records: 0 });
    expect(anchors().at(-1)).toMatchObject({ records: 2, signature: expect.any(String) });
  });
});

describe("blocked_results", () => {
  const FAKE_OUTPUT = JSON.stringify({
    type: "object",
    properties: { id: { type: "string" } },
    required: ["id"],
    additionalProperties: false,
  });
  const gateway = (config: Record<string, unknown>) =>
    testGateway({
      upstreams: [fakeUpstream({ timeout: "2s", env: { FAKE_OUTPUT } })],
      policy:
        "version: 1\nrules: [{id: r, match: {tool: create}, action: require_approval, reason: ask first}]\n",
      config,
    });

  /** The older line of the SDK compares errors with the schema too, once it has seen the list. */
  async function older(url: string): Promise<OlderClient> {
    const client = new OlderClient({ name: "older", version: "1" });
    const requestInit = { headers: { authorization: "Bearer agent" } };
    await client.connect(new OlderTransport(new URL(`${url}/mcp`), { requestInit }));
    await client.listTools();
    return client;
  }

  it(`text, the default: reaches a client that compares errors with the tool's output schema ${verifies("beyond.refusal.text-alone", "beyond.refusal.meta")}`, async () => {
    const g = await gateway({});
    const client = await older(g.url);
    const blocked = await client.callTool({ name: "create", arguments: {} });
    const approval_id = blocked._meta!["svc/approval_id"];
    expect(approval_id).toMatch(/^apr_/);
    expect(blocked).toEqual({
      isError: true,
      content: [{ type: "text", text: expect.stringMatching(/^ask first\napproval required: request apr_/) }],
      _meta: {
        "svc/run_id": expect.any(String),
        "svc/decision": "block",
        "svc/reasons": ["ask first", expect.stringContaining(String(approval_id))],
        "svc/approval_id": approval_id,
      },
    });
    await client.close();
    // Without a session the approved call still finds the run that asked.
    const modern = await g.connect("agent", { mode: "modern" });
    const waits = await call(modern, "create", { n: 1 });
    const approver = await g.connect("approver", { path: "/operator/mcp" });
    await call(approver, "svc.approve_action", { approval_id: waits._meta["svc/approval_id"] });
    expect((await call(modern, "create", { n: 1 }))._meta).toMatchObject({
      "svc/decision": "allow",
      "svc/run_id": waits._meta["svc/run_id"],
    });
  });

  it("structured: says it in structured content, for any declaration of the tool", async () => {
    const g = await gateway({ blocked_results: "structured" });
    const blocked = await call(await g.connect("agent"), "create");
    expect(blocked.structuredContent).toMatchObject({ decision: "block", approval_id: expect.any(String) });
    expect(blocked._meta["svc/approval_id"]).toBe(blocked.structuredContent.approval_id);
  });

  it("what became of a call is never mistaken for the tool's output", async () => {
    const g = await gateway({});
    const client = await older(g.url);
    const ended = await client.callTool({ name: "hang", arguments: {} });
    await client.close();
    expect(ended).toMatchObject({ isError: true, _meta: { "svc/status": "uncertain", "svc/step": 0 } });
    expect(ended.structuredContent).toBeUndefined();
  });
});
