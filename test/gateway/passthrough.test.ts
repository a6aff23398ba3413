/** Everything except tools: refused, unless an upstream's passthrough names it. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempDir } from "../support/tmp.ts";
import { aMoment } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { ask, call, FAKE_MANIFESTS, fakeUpstream, testGateway, until } from "./support/gateway.ts";

const OTHERS: [string, Record<string, unknown>][] = [
  ["resources/list", {}],
  ["resources/templates/list", {}],
  ["resources/read", { uri: "mem://fake/a" }],
  ["prompts/list", {}],
  ["prompts/get", { name: "p" }],
  ["completion/complete", { ref: { type: "ref/prompt", name: "p" }, argument: { name: "a", value: "" } }],
];

describe.each(["legacy", "modern"] as const)("a client of the %s era", (mode) => {
  it(`is refused everything but tools ${verifies("contract.gateway.other-methods-refused")}`, async () => {
    const g = await testGateway();
    const client = await g.connect("agent", { mode });
    for (const [method, params] of OTHERS) {
      // The newer era's transport says the same with the status.
      const refusal =
        mode === "legacy"
          ? { code: -32601 }
          : { data: { status: 404, text: expect.stringContaining("-32601") } };
      await expect(ask(client, method, params), method).rejects.toMatchObject(refusal);
    }
    const capabilities = client.getServerCapabilities();
    expect(Object.keys(capabilities ?? {}).sort()).toEqual(["logging", "tools"]);
  });

  it(`gets what the configuration lets through ${verifies("contract.gateway.passthrough")}`, async () => {
    const passthrough = ["resources", "prompts", "completions"];
    const g = await testGateway({
      upstreams: [
        fakeUpstream({ passthrough }),
        fakeUpstream({ name: "other", namespace: true, passthrough: ["prompts", "resources"] }),
        fakeUpstream({ name: "closed", namespace: true }),
      ],
    });
    const client = await g.connect("agent", { mode });
    const resources = (await ask(client, "resources/list")).resources;
    expect(resources).toEqual([
      { uri: "mem://fake/a", name: "a", "x-r": 1 },
      { uri: "mem://other/a", name: "a", "x-r": 1 },
    ]);
    const read = await ask(client, "resources/read", { uri: "mem://other/a" });
    expect(read.contents[0].text).toBe("hello from other");
    expect((await ask(client, "prompts/list")).prompts).toEqual([
      { name: "p", "x-p": 1 },
      { name: "other.p", "x-p": 1 },
    ]);
    const prompt = await ask(client, "prompts/get", { name: "other.p" });
    expect(prompt.messages[0].content.text).toBe("other: p");
    const completion = await ask(client, "completion/complete", OTHERS[5]![1]);
    expect(completion.completion.values).toEqual(["fake"]);
    expect(await g.events()).toEqual([]);
  });
});

describe("a prompt that two upstreams have", () => {
  it("is the one's that showed it first, and its arguments go to no other", async () => {
    const [seen, gate] = ["seen.jsonl", "gate"].map((name) => join(tempDir("prompts"), name)) as [
      string,
      string,
    ];
    const passthrough = ["prompts"];
    const fake = fakeUpstream({ name: "late", env: { FAKE_LOG: seen, FAKE_ONLY: "[]" }, passthrough });
    const waits = `until [ -e ${gate} ]; do sleep 0.05; done; exec ${fake.command} ${fake.args[0]}`;
    // Named before the other, and there after it.
    const late = { ...fake, command: "sh", args: ["-c", waits] };
    const g = await testGateway({ upstreams: [late, fakeUpstream({ passthrough })], patience_ms: 200 });
    const client = await g.connect("agent");
    const list = async () => (await ask(client, "prompts/list")).prompts;
    await until(async () => (await list()).length > 0, "the first list");
    writeFileSync(gate, "");
    await until(async () => {
      await list();
      return existsSync(seen) && readFileSync(seen, "utf8").includes("prompts/list");
    }, "the late one is asked");
    expect(await list()).toEqual([{ name: "p", "x-p": 1 }]);
    const got = await ask(client, "prompts/get", { name: "p", arguments: { about: "canary-of-the-first" } });
    expect(got.messages[0].content.text).toBe("fake: p");
    expect(readFileSync(seen, "utf8")).not.toContain("canary-of-the-first");
  });
});

describe("resources that are subscribed to", () => {
  it("tell those who asked, and nobody else", async () => {
    const g = await testGateway({ upstreams: [fakeUpstream({ passthrough: ["resources"] })] });
    const heard: string[] = [];
    const listen = (name: string) => ({
      prepare: (client: Awaited<ReturnType<typeof g.connect>>) =>
        client.setNotificationHandler(
          "notifications/resources/updated",
          ({ params }) => void heard.push(`${name} ${params.uri}`),
        ),
    });
    const one = await g.connect("agent", listen("one"));
    await g.connect("agent", listen("two"));
    // Each time it is asked the upstream tells once. What it tells before the client has its stream open is lost.
    await until(async () => {
      await ask(one, "resources/subscribe", { uri: "mem://fake/a" });
      return heard.length > 0;
    }, "an update");
    await aMoment();
    expect(new Set(heard)).toEqual(new Set(["one mem://fake/a"]));
    await ask(one, "resources/subscribe", { uri: "mem://fake/at-once" });
    await until(() => heard.includes("one mem://fake/at-once"), "an update that comes with the answer");
    expect(new Set(heard)).toEqual(new Set(["one mem://fake/a", "one mem://fake/at-once"]));
  });
});

describe("what an upstream asks of the client", () => {
  const client = { capabilities: { elicitation: { form: {} } } };
  const prepare = (answer: Record<string, unknown>) => (one: import("@modelcontextprotocol/client").Client) =>
    one.setRequestHandler("elicitation/create", async () => answer as never);

  it("is refused by default", async () => {
    const g = await testGateway();
    const agent = await g.connect("agent", {
      client,
      prepare: prepare({ action: "accept", content: { ok: true } }),
    });
    const { error } = JSON.parse((await call(agent, "ask")).content[0].text);
    expect(error.code).toBe(-32601);
  });

  it("reaches the very client whose call it is, when it may", async () => {
    const g = await testGateway({ upstreams: [fakeUpstream({ passthrough: ["elicitation"] })] });
    const agents = await Promise.all(
      [1, 2, 3].map((n) =>
        g.connect("agent", { client, prepare: prepare({ action: "accept", content: { n } }) }),
      ),
    );
    const answers = await Promise.all(agents.map((agent) => call(agent, "ask")));
    expect(answers.map(({ content }) => JSON.parse(content[0].text))).toEqual(
      [1, 2, 3].map((n) => ({ action: "accept", content: { n } })),
    );
    const without = await g.connect("agent");
    expect(JSON.parse((await call(without, "ask")).content[0].text).error.code).toBe(-32601);
  });

  it("arrives inside answers in the newer era, round by round", async () => {
    const { fileURLToPath } = await import("node:url");
    const script = fileURLToPath(new URL("./support/newer-upstream.mjs", import.meta.url));
    const upstream = { name: "newer", command: process.execPath, args: [script] };
    const manifests = `${FAKE_MANIFESTS}\n- {tool: confirm, effect: idempotent, permission: p}\n`;
    const open = await testGateway({ upstreams: [{ ...upstream, passthrough: ["elicitation"] }], manifests });
    for (const mode of ["legacy", "modern"] as const) {
      const agent = await open.connect("agent", {
        mode,
        client,
        prepare: prepare({ action: "accept", content: { ok: true } }),
      });
      const result = (await agent.callTool({ name: "confirm", arguments: {} })) as {
        content: { text: string }[];
      };
      expect(JSON.parse(result.content[0]!.text)).toMatchObject({
        answer: { action: "accept", content: { ok: true } },
      });
    }
    const shut = await testGateway({ upstreams: [upstream], manifests });
    const agent = await shut.connect("agent", {
      client,
      prepare: prepare({ action: "accept", content: { ok: true } }),
    });
    // The upstream learns of no client that it could ask, and so refuses the call itself.
    await expect(agent.callTool({ name: "confirm", arguments: {} })).rejects.toMatchObject({ code: -32021 });
  });
});
