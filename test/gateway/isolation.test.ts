/** Whose connection to an upstream a call goes over, and what of the upstreams each client is shown. */
import { beforeAll, describe, expect, it } from "vitest";
import { McpSessions } from "../../src/gateway/http/sessions.ts";
import { systemEnv } from "../../src/kernel/env.ts";
import { verifies } from "../support/verifies.ts";
import {
  type AnyResult,
  ask,
  call,
  FAKE_MANIFESTS,
  fakeUpstream,
  type GatewayTest,
  testGateway,
  toolNames,
  until,
} from "./support/gateway.ts";

const MANIFESTS = `${FAKE_MANIFESTS}
${["shared", "session", "lone", "tight", "brief"]
  .flatMap((name) => ["create", "get", "counted", "die"].map((tool) => `${name}.${tool}`))
  .map((tool) => `- {tool: ${tool}, effect: idempotent, permission: fake.write}`)
  .join("\n")}
- {tool: sample_it, effect: idempotent, permission: fake.write}
- {tool: only_as_task, effect: idempotent, permission: fake.write}
`;
const TASK = {
  name: "only_as_task",
  inputSchema: { type: "object" },
  execution: { taskSupport: "required" },
};

let g: GatewayTest;
beforeAll(async () => {
  g = await testGateway({
    manifests: MANIFESTS,
    upstreams: [
      fakeUpstream({
        passthrough: ["sampling", "prompts"],
        env: { FAKE_ASKS: "sample_it", FAKE_TOOLS: JSON.stringify([TASK]) },
      }),
      fakeUpstream({ name: "shared", namespace: true, isolation: "shared" }),
      fakeUpstream({ name: "session", namespace: true, isolation: "session" }),
      fakeUpstream({ name: "lone", namespace: true }),
      fakeUpstream({ name: "tight", namespace: true, max_connections: 1 }),
      fakeUpstream({
        name: "brief",
        namespace: true,
        idle: "1ms",
        env: { FAKE_BARE: "1" },
        passthrough: ["prompts"],
      }),
      fakeUpstream({ name: "mute", namespace: true, env: { FAKE_START: "mute" } }),
    ],
    patience_ms: 6_000,
  });
});

const pid = ({ content }: AnyResult) => JSON.parse(content[0].text).pid as number;

describe("isolation", () => {
  it(`separates principals, over their sessions and without any ${verifies("beyond.isolation.principal")}`, async () => {
    const [a, b] = [await g.connect("agent"), await g.connect("agent2")];
    const { id } = (await call(a, "create", { mine: true })).structuredContent;
    expect((await call(b, "get", { id })).structuredContent).toMatchObject({ exists: false });
    const modern = await g.connect("agent", { mode: "modern" });
    expect((await call(modern, "get", { id })).structuredContent).toMatchObject({ exists: true });
    expect(pid(await call(a, "counted"))).not.toBe(pid(await call(b, "counted")));
  });

  it(`shared: all have one ${verifies("beyond.isolation.shared")}`, async () => {
    const pids = await Promise.all(
      ["agent", "agent2"].map(async (key) => pid(await call(await g.connect(key), "shared.counted"))),
    );
    expect(pids[0]).toBe(pids[1]);
  });

  it(`session: each session has its own, until it ends ${verifies("beyond.isolation.session")}`, async () => {
    const [a, b] = [await g.connect("agent"), await g.connect("agent")];
    const { id } = (await call(a, "session.create", {})).structuredContent;
    expect((await call(a, "session.get", { id })).structuredContent).toMatchObject({ exists: true });
    expect((await call(b, "session.get", { id })).structuredContent).toMatchObject({ exists: false });
    const ended = pid(await call(b, "session.counted"));
    await (b.transport as unknown as { terminateSession(): Promise<void> }).terminateSession();
    await until(() => !alive(ended), "the end of its process");
    expect(pid(await call(a, "session.counted"))).not.toBe(ended);
  });

  it(`refuses past its bound, and shares nothing ${verifies("beyond.isolation.bound")}`, async () => {
    const [a, b] = [await g.connect("agent"), await g.connect("agent2")];
    const first = pid(await call(a, "tight.counted"));
    const refused = await call(b, "tight.counted");
    expect(refused).toMatchObject({ isError: true, structuredContent: { status: "failed" } });
    expect(refused.content[0].text).toContain("its limit of 1 connections");
    expect(pid(await call(a, "tight.counted"))).toBe(first);
  });

  it(`ends idle connections, and renews lost ones ${verifies("beyond.isolation.idle", "beyond.isolation.renewed")}`, async () => {
    const [a, b] = [await g.connect("agent"), await g.connect("agent2")];
    const before = [pid(await call(a, "brief.counted")), pid(await call(b, "brief.counted"))];
    const brief = g.running.gateway.upstreams.find(({ name }) => name === "brief")!;
    await brief.sweep();
    await until(() => before.every((one) => !alive(one)), "the end of both");
    await until(() => brief.ok, "its first connection");
    expect(before).not.toContain(pid(await call(b, "brief.counted")));
    await call(b, "session.die").catch(() => {});
    expect(pid(await call(b, "session.counted"))).toBeGreaterThan(0);
  });

  it(`refuses nobody because another's call broke its own connection ${verifies("beyond.isolation.renewed")}`, async () => {
    const [a, b] = [await g.connect("agent"), await g.connect("agent2")];
    const first = pid(await call(a, "lone.counted"));
    const own = pid(await call(b, "lone.counted"));
    await call(a, "lone.die").catch(() => {});
    expect(pid(await call(b, "lone.counted"))).toBe(own);
    expect(pid(await call(a, "lone.counted"))).not.toBe(first);
  });

  it(`undoes over the connection of the run's principal ${verifies("beyond.isolation.undo")}`, async () => {
    const [a, b] = [await g.connect("agent"), await g.connect("agent2")];
    const rows = [await call(a, "create", { whose: "a" }), await call(b, "create", { whose: "b" })];
    const operator = await g.connect("operator", { path: "/operator/mcp" });
    const run_id = rows[1]._meta["svc/run_id"];
    const report = (await call(operator, "svc.execute_rollback", { run_id, confirm: true }))
      .structuredContent;
    expect(report).toMatchObject({ failed: [] });
    const left = async (client: typeof a, { structuredContent: { id } }: AnyResult) =>
      (await call(client, "get", { id })).structuredContent.exists;
    expect([await left(a, rows[0]), await left(b, rows[1])]).toEqual([true, false]);
  });
});

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("the list", () => {
  it(`follows what the client can be asked ${verifies("beyond.listing.capabilities")}`, async () => {
    const plain = await toolNames(await g.connect("agent"));
    expect(plain).toContain("create");
    expect(plain).not.toContain("sample_it");
    const asked = await g.connect("agent", { client: { capabilities: { sampling: {} } } });
    expect(await toolNames(asked)).toContain("sample_it");
    expect((await call(asked, "sample_it"))._meta["svc/decision"]).toBe("allow");
    expect(await toolNames(await g.connect("agent"))).not.toContain("sample_it");
  });

  it(`leaves out what runs as a task alone, and waits for no upstream that hangs ${verifies("beyond.listing.task", "beyond.listing.hanging")}`, async () => {
    const names = await toolNames(await g.connect("agent"));
    expect(names).not.toContain("only_as_task");
    expect(names).toEqual(expect.arrayContaining(["create", "shared.create", "brief.counted"]));
    expect(g.running.gateway.upstreams.find(({ name }) => name === "mute")!.ok).toBe(false);
  });

  it(`joins lists of those that have them, and passes on what upstreams say of themselves ${verifies("beyond.listing.joined", "beyond.listing.instructions")}`, async () => {
    const client = await g.connect("agent");
    expect((await ask(client, "prompts/list")).prompts).toEqual([{ name: "p", "x-p": 1 }]);
    expect(client.getInstructions()).toMatch(
      /^do as the upstream says\n\n[\s\S]*Every tool call here is decided/,
    );
  });
});

describe("sessions", () => {
  it(`make room by ending the longest idle one ${verifies("beyond.sessions.idle-first")}`, async () => {
    const sessions = new McpSessions(systemEnv);
    const ended: number[] = [];
    const open = (n: number) => {
      const server = {
        onclose: () => {},
        connect: async () => {},
        close: async () => {
          ended.push(n);
          server.onclose();
        },
      };
      const opened = { server: server as never, close: () => {} };
      return sessions.open(
        { id: "key:a" } as never,
        () => true,
        () => opened,
      );
    };
    for (let n = 0; n < 1_000; n++) (await open(n)).touched_ms = n === 7 ? -1 : n;
    await open(1_000);
    expect(ended).toEqual([7]);
    expect(sessions.size).toBe(1_000);
  });
});
