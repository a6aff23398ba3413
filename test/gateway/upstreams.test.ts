/** Upstreams: names, shapes, and everything that can go wrong with them. */
import { rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { freePort } from "../support/ports.ts";
import { tempDir } from "../support/tmp.ts";
import { countTrials } from "../support/trials.ts";
import { verifies } from "../support/verifies.ts";
import { ask, call, FAKE_MANIFESTS, fakeUpstream, testGateway, toolNames, until } from "./support/gateway.ts";
import { httpUpstream } from "./support/http-upstream.ts";

const NEWER = fileURLToPath(new URL("./support/newer-upstream.mjs", import.meta.url));
const open = (tools: string[]) =>
  tools.map((tool) => `- {tool: ${tool}, effect: idempotent, permission: p}\n`).join("");
const get = async (url: string, key?: string) => {
  const answer = await fetch(url, key === undefined ? {} : { headers: { authorization: `Bearer ${key}` } });
  return { status: answer.status, body: await answer.json() };
};

describe("a server that is slow to start", () => {
  it(`is waited for by a call, and by an undo through it ${verifies("beyond.upstreams.undo-waits")}`, async () => {
    const store = new MemoryStore();
    const folder = tempDir("slow-start");
    const gate = join(folder, "open");
    // It starts when the test lets it, which is long after the gateway did.
    const command = `until [ -e ${gate} ]; do sleep 0.02; done; exec ${process.execPath} ${fakeUpstream().args[0]}`;
    const slow = { name: "fake", command: "/bin/sh", args: ["-c", command], env: { FAKE_NAME: "fake" } };
    const started = () => testGateway({ store, upstreams: [slow], patience_ms: 0 });
    const first = await started();
    const made = call(await first.connect("agent"), "create", { name: "n" });
    writeFileSync(gate, "");
    const run_id = (await made)._meta["svc/run_id"];
    rmSync(gate);
    const second = await started();
    const operator = await second.connect("operator", { path: "/operator/mcp" });
    const undone = call(operator, "svc.execute_rollback", { run_id, confirm: true });
    writeFileSync(gate, "");
    expect((await undone).structuredContent).toMatchObject({ compensated: [0], failed: [] });
  });
});

describe("names", () => {
  it(`are namespaced if the configuration asks for it ${verifies("contract.gateway.namespace", "contract.gateway.tool-name", "core.gateway.namespaced", "core.gateway.config-upstreams")}`, async () => {
    const g = await testGateway({
      upstreams: [
        fakeUpstream({ name: "one", namespace: true }),
        fakeUpstream({ name: "two", namespace: true }),
        fakeUpstream({ name: "three" }),
      ],
      manifests: open(["one.echo", "two.echo", "echo"]),
    });
    const client = await g.connect("agent");
    expect(await toolNames(client)).toEqual(["one.echo", "two.echo", "echo"]);
    for (const tool of ["one.echo", "two.echo", "echo"]) {
      const result = await call(client, tool, { a: 1 });
      expect(result.structuredContent.got).toEqual({ a: 1 });
      expect(await g.trail(result._meta["svc/run_id"])).toContainEqual(expect.objectContaining({ tool }));
    }
    expect((await call(client, "one.get")).structuredContent.reasons).toEqual([
      "no manifest is registered for this tool",
    ]);
  });

  it(`that two upstreams offer are refused at the start ${verifies("contract.gateway.duplicates-refused")}`, async () => {
    const upstreams = [fakeUpstream({ name: "one" }), fakeUpstream({ name: "two" })];
    await expect(testGateway({ upstreams })).rejects.toThrow(
      /upstreams one and two both offer tool "echo"; set namespace: true/,
    );
  });

  it(`that begin with svc. are refused at the start ${verifies("contract.gateway.svc-names-refused")}`, async () => {
    const FAKE_TOOLS = JSON.stringify([{ name: "svc.halt", inputSchema: { type: "object" } }]);
    const upstreams = [fakeUpstream({ env: { FAKE_TOOLS } })];
    await expect(testGateway({ upstreams })).rejects.toThrow(/tool "svc.halt" begins with "svc\."/);
  });

  it("that come to clash later are not offered, and the first keeps its name", async () => {
    const FAKE_TOOLS = JSON.stringify([{ name: "own", inputSchema: { type: "object" } }]);
    const command = `sleep 0.4; exec ${process.execPath} ${fakeUpstream().args[0]}`;
    const slow = {
      name: "slow",
      command: "sh",
      args: ["-c", command],
      env: { FAKE_NAME: "slow", FAKE_TOOLS },
    };
    const g = await testGateway({
      upstreams: [fakeUpstream({ name: "first" }), slow],
      manifests: `${FAKE_MANIFESTS}${open(["own"])}`,
      patience_ms: 300,
    });
    const client = await g.connect("agent");
    await until(async () => (await toolNames(client)).includes("own"), "the slow upstream's own tool");
    expect((await call(client, "own")).content[0].text).toBe("slow: own");
    expect(g.logged.join("\n")).toContain("a tool is not offered");
  });
});

describe("the environment of a child", () => {
  it(`is the few usual variables and the configured ones ${verifies("contract.gateway.upstream-command")}`, async () => {
    const cwd = tempDir("cwd");
    process.env["SVC_TEST_SECRET"] = "canary";
    process.env["AWS_SECRET_ACCESS_KEY"] = "canary";
    const g = await testGateway({ upstreams: [{ ...fakeUpstream({ env: { OWN: "yes" } }), cwd }] });
    const client = await g.connect("agent");
    const seen = JSON.parse((await call(client, "env")).content[0].text);
    expect(seen).toMatchObject({ OWN: "yes", FAKE_NAME: "fake", PATH: process.env["PATH"] });
    const usual = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
    expect(
      Object.keys(seen)
        .filter((name) => !usual.includes(name))
        .sort(),
    ).toEqual(["FAKE_NAME", "OWN"]);
  });
});

describe("a broken upstream", () => {
  it(`takes nobody with it ${verifies("contract.gateway.broken-alone", "core.route.readyz-upstreams", "contract.http.connectors")}`, async () => {
    const g = await testGateway({
      upstreams: [
        fakeUpstream({ name: "good" }),
        fakeUpstream({ name: "gone", namespace: true, env: { FAKE_START: "exit" } }),
        { name: "missing", command: "/no/such/program", namespace: true },
        { name: "refused", url: "http://127.0.0.1:9/mcp", namespace: true },
      ],
    });
    const client = await g.connect("agent");
    expect((await call(client, "echo")).isError).toBeUndefined();
    const ready = await get(`${g.url}/readyz`);
    expect(ready.status).toBe(200);
    expect(ready.body).toMatchObject({
      ok: true,
      upstreams: [
        { name: "good", ok: true },
        { name: "gone", ok: false },
        { name: "missing", ok: false },
        { name: "refused", ok: false },
      ],
    });
    expect((await get(`${g.url}/v1/connectors`, "auditor")).body).toEqual({
      connectors: [
        { name: "good", transport: "stdio", ok: true, tools: expect.any(Number) },
        { name: "gone", transport: "stdio", ok: false, tools: 0 },
        { name: "missing", transport: "stdio", ok: false, tools: 0 },
        { name: "refused", transport: "http", ok: false, tools: 0 },
      ],
    });
    expect(g.logged.join("\n")).toContain("cannot start: the database is missing");
  });

  it(`of the transport before Streamable HTTP is refused with what to do ${verifies("beyond.gateway.older-sse")}`, async () => {
    const server = createServer(({ method }, response) => {
      if (method !== "GET") return response.writeHead(404).end();
      return response
        .writeHead(200, { "content-type": "text/event-stream" })
        .write("event: endpoint\ndata: /m\n\n");
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/sse`;
    const g = await testGateway({ upstreams: [{ name: "older", url }], patience_ms: 3_000 });
    expect(g.logged.join("\n")).toMatch(/speaks HTTP\+SSE.*npx -y supergateway --sse/);
    await g.running.stop();
    server.closeAllConnections();
    server.close();
  });

  it(`makes the gateway unready when it is the last ${verifies("contract.readings.readyz-gateway")}`, async () => {
    const g = await testGateway({ upstreams: [fakeUpstream({ env: { FAKE_START: "exit" } })] });
    const ready = await get(`${g.url}/readyz`);
    expect(ready.status).toBe(503);
    expect(ready.body).toMatchObject({
      ok: false,
      upstreams: [{ name: "fake", ok: false }],
      problems: [expect.stringContaining("no upstream is working")],
    });
    expect((await get(`${g.url}/healthz`)).status).toBe(200);
  });

  it("that is slow with one call is uncertain for that one and no other", async () => {
    const g = await testGateway({
      upstreams: [
        fakeUpstream({ name: "bad", namespace: true, timeout: "2s" }),
        fakeUpstream({ name: "good" }),
      ],
      manifests: `${FAKE_MANIFESTS}${open(["bad.echo", "bad.hang"])}`,
    });
    const client = await g.connect("agent");
    const [hung, same, fine] = await Promise.all([
      call(client, "bad.hang"),
      call(client, "bad.echo"),
      call(client, "echo"),
    ]);
    expect(hung.structuredContent).toMatchObject({
      status: "uncertain",
      error: "upstream bad did not answer within 2000 ms",
    });
    expect(same.isError).toBeUndefined();
    expect(fine.isError).toBeUndefined();
    expect(g.running.gateway.connectors()).toMatchObject([{ ok: true }, { ok: true }]);
    countTrials("any", "upstream hangs in a call", 1);
  });

  it("that talks garbage is understood where it makes sense", async () => {
    const g = await testGateway({ upstreams: [fakeUpstream({ timeout: "2s" })] });
    const client = await g.connect("agent", { headers: { "svc-run-id": "garbage" } });
    expect((await call(client, "garbage")).content[0].text).toBe("after the garbage");
    expect((await call(client, "twice")).content[0].text).toBe("first");
    expect((await call(client, "wrong_id")).structuredContent).toMatchObject({ status: "uncertain" });
    expect((await call(client, "echo", { a: 2 })).structuredContent.got).toEqual({ a: 2 });
    expect(await g.events("garbage")).toEqual([
      "intended",
      "succeeded",
      "intended",
      "succeeded",
      "intended",
      "uncertain",
      "intended",
      "succeeded",
    ]);
    countTrials("any", "upstream talks garbage", 3);
  });

  it("that sends a line without end is cut off, in bounded memory", async () => {
    const g = await testGateway();
    const client = await g.connect("agent", { headers: { "svc-run-id": "flood" } });
    const before = process.memoryUsage().rss;
    const result = await call(client, "flood");
    expect(result.structuredContent).toMatchObject({ status: "uncertain" });
    expect(process.memoryUsage().rss - before).toBeLessThan(250 * 1_048_576);
    await until(async () => (await call(client, "echo")).isError !== true, "the upstream is back");
    countTrials("any", "upstream sends a line without end", 1);
  });

  it("that stops reading does not delay the others, or fill the memory", async () => {
    const mute = fakeUpstream({ name: "mute", namespace: true, timeout: "2s" });
    const g = await testGateway({
      upstreams: [mute, fakeUpstream({ name: "good" })],
      manifests: `${FAKE_MANIFESTS}${open(["mute.echo", "mute.counted"])}`,
    });
    const client = await g.connect("agent");
    const pid = JSON.parse((await call(client, "mute.counted")).content[0].text).pid as number;
    const big = "x".repeat(500_000);
    process.kill(pid, "SIGSTOP");
    const calls = Array.from({ length: 40 }, (_, i) => call(client, "mute.echo", { big, i }));
    expect((await call(client, "echo")).isError).toBeUndefined();
    const results = await Promise.all(calls);
    // A fast machine has it begun again before the last of them are sent: those are answered.
    const told = results
      .filter(({ isError }) => isError === true)
      .map(({ structuredContent }) => structuredContent.error as string);
    expect(told.some((text) => text.includes("did not answer"))).toBe(true);
    expect(told.some((text) => text.includes("stopped reading"))).toBe(true);
    await until(async () => (await call(client, "mute.echo", {})).isError !== true, "it was begun anew");
    countTrials("any", "upstream stops reading", told.length);
  });
});

describe("an upstream over HTTP", () => {
  it(`gets its headers, and its tools are offered ${verifies("contract.gateway.upstream-url")}`, async () => {
    const up = await httpUpstream();
    const g = await testGateway({
      upstreams: [
        { name: "up", url: up.url, headers: { "x-api-key": "k1", authorization: "Bearer upstream-token" } },
      ],
      manifests: open(["where", "streamed"]),
    });
    const client = await g.connect("agent");
    expect((await call(client, "where")).content[0].text).toBe("s1");
    expect((await call(client, "streamed")).content[0].text).toBe("streamed");
    for (const { headers } of up.seen)
      expect(headers).toMatchObject({ "x-api-key": "k1", authorization: "Bearer upstream-token" });
    expect(up.seen.some(({ headers }) => String(headers["authorization"]).includes("agent"))).toBe(false);
  });

  it("that says its address and its key back puts neither into the log or on the ledger", async () => {
    const up = await httpUpstream();
    const g = await testGateway({
      upstreams: [
        {
          name: "up",
          url: `${up.url}/t0ken-in-the-path?k=k3y-in-the-query`,
          headers: { "x-api-key": "h3ader-key", authorization: "Bearer b3arer-key" },
          passthrough: ["resources"],
        },
      ],
      manifests: open(["tells_own_address", "refuses_with_address"]),
    });
    const client = await g.connect("agent", { headers: { "svc-run-id": "telling" } });
    expect((await call(client, "tells_own_address")).isError).toBe(true);
    await expect(call(client, "refuses_with_address")).rejects.toThrow("cannot POST");
    up.lost = true;
    await expect(ask(client, "resources/read", { uri: "mem://x" })).rejects.toThrow();
    await call(client, "tells_own_address");
    await until(() => !g.running.gateway.upstreams[0]!.ok, "it is noticed");
    const ended = (await g.trail("telling")).filter(({ event }) => event === "failed");
    expect(ended.length).toBeGreaterThan(1);
    const kept = [...g.logged, ...ended.map((record) => JSON.stringify(record))].join("\n");
    expect(kept).not.toMatch(/t0ken|k3y-in|h3ader|b3arer/);
    expect(g.running.gateway.upstreams[0]!.problem).not.toMatch(/t0ken|k3y-in|h3ader|b3arer/);
  });

  it.each([404, 400])(
    "whose session was forgotten (%i) gets a new one, and the call goes through once",
    async (status) => {
      const up = await httpUpstream();
      up.unknown_session = status;
      const g = await testGateway({ upstreams: [{ name: "up", url: up.url }], manifests: open(["where"]) });
      const client = await g.connect("agent", { headers: { "svc-run-id": "renewed" } });
      expect((await call(client, "where")).content[0].text).toBe("s1");
      up.sessions.clear();
      const results = await Promise.all([call(client, "where"), call(client, "where")]);
      expect(results.map(({ content }) => content[0].text)).toEqual(["s2", "s2"]);
      expect(await g.events("renewed")).toHaveLength(6);
      expect(up.initialized).toBe(2);
    },
  );

  it("that breaks off is uncertain at once; one that refuses is failed", async () => {
    const up = await httpUpstream();
    const g = await testGateway({
      upstreams: [{ name: "up", url: up.url, timeout: "20s" }],
      manifests: open(["reset", "stream_end", "huge", "http_500", "http_403"]),
    });
    const client = await g.connect("agent");
    for (const [tool, status] of [
      ["reset", "uncertain"],
      ["stream_end", "uncertain"],
      ["http_500", "uncertain"],
      ["huge", "uncertain"],
      ["http_403", "failed"],
    ] as const) {
      const result = await call(client, tool);
      expect([tool, result.structuredContent?.status]).toEqual([tool, status]);
    }
    countTrials("any", "upstream breaks off", 5);
  });

  it(`that goes away and comes back is found again, by every principal, and a call in between was not made ${verifies("beyond.isolation.renewed", "beyond.upstreams.not-sent")}`, async () => {
    const up = await httpUpstream();
    const g = await testGateway({
      upstreams: [{ name: "up", url: up.url, timeout: "2s" }],
      manifests: open(["where"]),
    });
    const [client, other] = [await g.connect("agent"), await g.connect("agent2")];
    for (const one of [client, other]) await call(one, "where");
    await up.stop();
    for (const one of [client, other]) {
      const away = await call(one, "where");
      expect(away.content[0].text).toContain("nothing was sent to up");
      expect((await g.events(away._meta["svc/run_id"])).at(-1)).toBe("failed");
    }
    await until(() => !g.running.gateway.upstreams[0]!.ok, "it is noticed");
    const back = await httpUpstream(up.port);
    for (const one of [client, other])
      await until(async () => (await call(one, "where")).isError !== true, "it is back");
    expect(back.initialized).toBeGreaterThan(0);
  });

  it(`is reached through the egress guard ${verifies("ops.egress.covers-upstreams")}`, async () => {
    const up = await httpUpstream();
    const g = await testGateway({
      upstreams: [{ name: "up", url: up.url }, fakeUpstream()],
      config: { egress: { allow: ["tools.example.com"] } },
    });
    expect(g.running.gateway.connectors()).toMatchObject([
      { name: "up", ok: false },
      { name: "fake", ok: true },
    ]);
    expect(up.seen).toEqual([]);
    expect(g.logged.join("\n")).toContain("allow list");
  });
});

describe("an upstream of the newer era alone", () => {
  it("is spoken to in its own way over stdio", async () => {
    const g = await testGateway({
      upstreams: [{ name: "newer", command: process.execPath, args: [NEWER] }],
      manifests: open(["hello", "list_shape"]),
    });
    for (const mode of ["legacy", "modern"] as const) {
      const client = await g.connect("agent", { mode });
      expect((await call(client, "hello", { who: "you" })).content[0].text).toBe("hello you");
      const listed = await call(client, "list_shape");
      expect(listed.structuredContent).toEqual(mode === "legacy" ? { result: [1] } : [1]);
    }
  });

  it(`gets the headers that it asks for over HTTP, also where it never answers who listens for changes ${verifies("beyond.upstreams.deaf")}`, async () => {
    const { spawn } = await import("node:child_process");
    const port = await freePort();
    const child = spawn(process.execPath, [NEWER], {
      env: { ...process.env, PORT: String(port) },
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      await new Promise((resolve) => child.stdout.once("data", resolve));
      const g = await testGateway({
        upstreams: [{ name: "newer", url: `http://127.0.0.1:${port}/mcp` }],
        manifests: open(["hello"]),
      });
      const client = await g.connect("agent");
      const result = await call(client, "hello", { who: "Zoë" });
      expect(result.content[0].text).toBe("hello Zoë");
      expect(result.structuredContent.header).toBe(`=?base64?${Buffer.from("Zoë").toString("base64")}?=`);
    } finally {
      child.kill();
    }
  });
});

describe("changed tools", () => {
  it("reach every client, of any protocol version", async () => {
    const g = await testGateway({ mode: "observe" });
    const heard: string[] = [];
    const options = (name: string) => ({
      client: { listChanged: { tools: { onChanged: () => void heard.push(name), debounceMs: 0 } } },
    });
    const older = await g.connect("agent", options("older"));
    await g.connect("agent", { mode: "modern", ...options("newer") });
    // Sent again and again, because a notice is lost before a client has its stream open.
    await until(async () => {
      await call(older, "redefine");
      return heard.includes("older") && heard.includes("newer");
    }, "both to hear of it");
  });
});
