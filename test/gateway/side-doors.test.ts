/** Data next to a call's arguments: nobody evaluates it and no approval covers it, so no upstream gets it. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Client } from "@modelcontextprotocol/client";
import { describe, expect, it } from "vitest";
import { tempDir } from "../support/tmp.ts";
import { ask, call, FAKE_MANIFESTS, fakeUpstream, type GatewayTest, testGateway } from "./support/gateway.ts";
import { httpUpstream } from "./support/http-upstream.ts";

const CANARY = "unjudged-7f31c2";
const ERAS = ["legacy", "modern"] as const;
const NEWER = fileURLToPath(new URL("./support/newer-upstream.mjs", import.meta.url));
const MANIFESTS = `${FAKE_MANIFESTS}${["hello", "confirm", "where"]
  .map((tool) => `- {tool: ${tool}, effect: idempotent, permission: p}\n`)
  .join("")}`;

/** Every place outside the arguments that a client can write into. */
const BESIDE = {
  _meta: {
    "acme/key": CANARY,
    plain: [CANARY],
    traceparent: `00-${CANARY}`,
    tracestate: CANARY,
    baggage: `key=${CANARY}`,
    progressToken: CANARY,
    "svc/reason": `because of ${CANARY}`,
    "svc/unheard-of": CANARY,
    "io.modelcontextprotocol/related-task": { taskId: CANARY },
  },
  inputResponses: { ok: { action: "accept", content: { key: CANARY } } },
  requestState: CANARY,
  more: CANARY,
};
const HEADERS = {
  "mcp-param-who": CANARY,
  "x-forwarded-secret": CANARY,
  cookie: `a=${CANARY}`,
  traceparent: CANARY,
  "user-agent": CANARY,
};
const CAPABILITIES = {
  capabilities: {
    elicitation: { form: { hint: CANARY }, hint: CANARY },
    sampling: { hint: CANARY },
    roots: { listChanged: true, hint: CANARY },
    experimental: { [CANARY]: {} },
  },
};

function logFile(): { path: string; text(): string } {
  const path = join(tempDir("side-doors"), "seen.jsonl");
  return { path, text: () => (existsSync(path) ? readFileSync(path, "utf8") : "") };
}

function connect(g: GatewayTest, mode: (typeof ERAS)[number], headers = {}): Promise<Client> {
  return g.connect("agent", { mode, headers: { ...HEADERS, ...headers }, client: CAPABILITIES as never });
}

describe.each(ERAS)("a client of the %s era", (mode) => {
  it.each([[[]], [["resources", "prompts", "completions"]]])(
    "reaches an older upstream through its arguments alone, with passthrough %j",
    async (passthrough) => {
      const seen = logFile();
      const g = await testGateway({
        upstreams: [fakeUpstream({ env: { FAKE_LOG: seen.path }, passthrough })],
      });
      const client = await connect(g, mode);
      const told = await ask(client, "tools/call", { name: "echo", arguments: { a: 1 }, ...BESIDE });
      expect(told.structuredContent).toMatchObject({ got: { a: 1 } });
      if (passthrough.length > 0) {
        const name = { name: "p", arguments: { topic: "judged by nobody, as configured" } };
        await ask(client, "prompts/get", { ...name, ...BESIDE });
        await ask(client, "resources/list", BESIDE);
        await ask(client, "resources/read", { uri: "mem://fake/a", ...BESIDE });
        expect(seen.text()).toContain("judged by nobody, as configured");
      }
      expect(seen.text()).toContain('"arguments":{"a":1}');
      expect(calls(seen.text()).flatMap(unjudged)).toEqual([]);
    },
  );

  it("reaches a newer upstream through its arguments alone", async () => {
    const seen = logFile();
    const upstream = {
      name: "newer",
      command: process.execPath,
      args: [NEWER],
      env: { FAKE_LOG: seen.path },
    };
    const g = await testGateway({ upstreams: [upstream], manifests: MANIFESTS });
    const client = await connect(g, mode);
    const told = await ask(client, "tools/call", { name: "hello", arguments: { who: "you" }, ...BESIDE });
    expect(told.content[0].text).toBe("hello you");
    // Without passthrough an unexpected answer is ignored: the tool still wants to ask.
    await expect(
      ask(client, "tools/call", { name: "confirm", arguments: {}, ...BESIDE }),
    ).rejects.toMatchObject({ code: -32021 });
    expect(seen.text()).toContain('"who":"you"');
    expect(seen.text()).not.toContain(CANARY);
  });

  it("names its abilities, where that passes, without its own texts", async () => {
    const seen = logFile();
    const upstream = {
      ...{ name: "newer", command: process.execPath, args: [NEWER], env: { FAKE_LOG: seen.path } },
      passthrough: ["elicitation", "sampling", "roots"],
    };
    const g = await testGateway({ upstreams: [upstream], manifests: MANIFESTS });
    const client = await connect(g, mode);
    await ask(client, "tools/call", { name: "hello", arguments: { who: "you" }, _meta: BESIDE._meta });
    expect(seen.text()).toContain('"elicitation":{"form":{}}');
    expect(seen.text()).not.toContain(CANARY);
  });

  it("reaches an upstream over HTTP without its headers", async () => {
    const up = await httpUpstream();
    const g = await testGateway({ upstreams: [{ name: "web", url: up.url }], manifests: MANIFESTS });
    await ask(await connect(g, mode), "tools/call", { name: "where", arguments: {}, ...BESIDE });
    expect(up.seen.map(({ message }) => message.method)).toContain("tools/call");
    expect(JSON.stringify(up.seen)).not.toContain(CANARY);
  });

  it("cannot add to a call that was approved", async () => {
    const seen = logFile();
    const g = await testGateway({
      upstreams: [fakeUpstream({ env: { FAKE_LOG: seen.path } })],
      policy: "version: 1\nrules: [{id: ask, action: require_approval, match: {tool: create}}]\n",
    });
    const client = await connect(g, mode);
    const { approval_id } = (await call(client, "create", { n: 1 })).structuredContent;
    const approver = await g.connect("approver", { path: "/operator/mcp" });
    await call(approver, "svc.approve_action", { approval_id });
    const done = await ask(client, "tools/call", { name: "create", arguments: { n: 1 }, ...BESIDE });
    expect(done._meta["svc/decision"]).toBe("allow");
    expect(calls(seen.text())).toMatchObject([{ params: { name: "create", arguments: { n: 1 } } }]);
    expect(calls(seen.text()).flatMap(unjudged)).toEqual([]);
  });
});

interface Message {
  method: string;
  params: Record<string, unknown>;
}

/** What an older upstream was asked, but for the greeting and the list of its tools. */
function calls(text: string): Message[] {
  const messages = text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Message]));
  return messages.filter(({ method }) => /^(tools\/call|prompts|resources)/.test(method));
}

/** The members of a request that nobody judged; a progress token is the gateway's own. */
function unjudged({ method, params }: Message): string[] {
  const { _meta, ...rest } = params as { _meta?: Record<string, unknown> };
  const own = Object.entries(_meta ?? {}).filter(
    ([name, value]) => name !== "progressToken" || value === CANARY,
  );
  const text = JSON.stringify(method === "tools/call" ? rest : { ...rest, more: undefined });
  return [...own.map(([name]) => `${method} _meta ${name}`), ...(text.includes(CANARY) ? [text] : [])];
}
