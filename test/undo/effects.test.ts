/** Tools that say success and did nothing, or something else, are found out by a read; those that did it are not. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { open, UncertainError } from "../../src/index.ts";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import { manifestProblems } from "../../src/rules/manifest/load.ts";
import { type ConsoleServer, consoleServer } from "../console/support/server.ts";
import { call, type GatewayTest, testGateway } from "../gateway/support/gateway.ts";
import { svc } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const CHECK = "effect_check: {tool: note.get, args: {id: $args.id}, expect: {text: $args.text}, retries: 0}";
const UNDO = "compensation: {tool: note.drop, args: {id: $result.id}}";
const write = (tool: string, check = CHECK) =>
  `- {tool: ${tool}, effect: compensable, permission: p, ${UNDO}, ${check}}`;
const MANIFESTS = `
- {tool: note.get, effect: read, permission: p}
- {tool: note.crash, effect: read, permission: p}
- {tool: far.get, effect: read, permission: far}
${["note.write", "note.pretend", "note.other"].map((tool) => write(tool)).join("\n")}
${write("note.later", CHECK.replace("retries: 0", "retries: 4, backoff_ms: 1"))}
${write("note.blind", CHECK.replace("note.get", "note.crash"))}
${write("note.blank", CHECK.replace("$args.id", "$result.id"))}
${write("note.far", CHECK.replace("note.get", "far.get"))}
- {tool: note.plain, effect: compensable, permission: p, ${UNDO}}
- {tool: note.drop, effect: irreversible, permission: p, effect_check: {tool: note.get, args: {id: $args.id}, expect: {is_error: true}, retries: 0}}
- {tool: note.keep, effect: irreversible, permission: p, effect_check: {tool: note.get, args: {id: $args.id}, expect: {is_error: true}, retries: 0}}
`;
const PERMISSIONS = ["p"];

describe("a manifest", () => {
  const problems = (check: string) =>
    manifestProblems(
      `- {tool: get, effect: read, permission: p}\n- tool: put\n  effect: irreversible\n  permission: p\n  effect_check: ${check}\n`,
      "m.yaml",
    ).join("\n");

  it.each([
    ["{tool: put, expect: 1}", "effect_check.tool: is the tool itself"],
    ["{tool: get}", "effect_check.expect: is missing"],
    ["{tool: get, expect: {}}", "effect_check.expect: matches every answer"],
    ["{tool: get, expect: {a: $before.a}}", "effect_check.expect.a: is a path into $before"],
    ["{tool: get, args: {id: $arg.id}, expect: 1}", "effect_check.args.id: is not a path"],
    ["{expect: 1}", "effect_check.tool: is missing"],
  ])(`refuses effect_check: %s ${verifies("beyond.effect.validated")}`, (check, problem) => {
    expect(problems(check)).toContain(problem);
  });

  it("refuses a check whose tool writes, and one of a tool that only reads", () => {
    verifies("beyond.effect.validated");
    const writing =
      "- {tool: set, effect: idempotent, permission: p}\n- {tool: put, effect: irreversible, permission: p, effect_check: {tool: set, expect: 1}}";
    expect(manifestProblems(writing, "m.yaml").join()).toContain(
      "effect_check.tool: set is declared idempotent; effect_check must use a tool of effect read",
    );
    const reading =
      "- {tool: get, effect: read, permission: p}\n- {tool: look, effect: read, permission: p, effect_check: {tool: get, expect: 1}}";
    expect(manifestProblems(reading, "m.yaml").join()).toContain("a tool that only reads has no effect");
    expect(manifestProblems(MANIFESTS, "m.yaml")).toEqual([]);
  });
});

describe("over HTTP", () => {
  let s: ConsoleServer;
  let n = 0;
  beforeAll(async () => {
    s = await consoleServer({ manifests: MANIFESTS, config: "console: login\n" });
    return () => s.close();
  });
  const ok = async (key: string, method: string, path: string, body?: unknown) => {
    const answer = await s.api(key, method, path, body);
    expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300);
    return answer.body;
  };
  const opened = async () => {
    const run_id = `effect-${n++}`;
    await ok("agent", "POST", "/v1/runs", { run_id, permissions: PERMISSIONS });
    return run_id;
  };
  const ask = (run: string, tool: string) =>
    ok("agent", "POST", `/v1/runs/${run}/intents`, { tool, args: { id: "a", text: "canary" }, reason: "r" });
  const end = (run: string, step: number, more: object) =>
    ok("agent", "POST", `/v1/runs/${run}/steps/${step}/outcome`, {
      status: "succeeded",
      result: { id: "a" },
      ...more,
    });
  const trail = async (run: string) => {
    const headers = { authorization: "Bearer auditor" };
    const text = await (await fetch(`${s.url}/v1/runs/${run}/export`, { headers })).text();
    return text
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as { event: string; detail?: string });
  };

  it("the decision asks for the check, and what the agent observed decides", async () => {
    verifies("beyond.effect.http", "beyond.effect.missing", "beyond.effect.alert", "beyond.effect.shown");
    const run = await opened();
    expect(await ask(run, "note.write")).toEqual({
      decision: "allow",
      step: 0,
      effect_check: {
        tool: "note.get",
        args: { id: "$args.id" },
        expect: { text: "$args.text" },
        retries: 0,
        backoff_ms: 200,
      },
    });
    expect(await end(run, 0, { observed: { text: "canary", at: 1 } })).toEqual({
      step: 0,
      status: "succeeded",
      effect_check: "held",
    });
    await ask(run, "note.write");
    expect(await end(run, 1, { observed: { text: "old" } })).toEqual({
      step: 1,
      status: "uncertain",
      effect_check: "missing",
    });
    const records = await trail(run);
    expect(records.map(({ event }) => event)).toEqual([
      "intended",
      "succeeded",
      "intended",
      "effect_missing",
      "uncertain",
    ]);
    expect(records[1]!.detail).toBe("effect: held, checked by agent");
    expect(records[4]!.detail).toContain("effect missing: note.get does not show what the call reported");
    expect(JSON.stringify(records)).not.toContain("canary");
    const { steps, unresolved } = await ok("auditor", "GET", `/v1/runs/${run}`);
    expect(steps[0]).toMatchObject({ effect_check: "held", effect_check_by: "agent" });
    expect(unresolved).toEqual([1]);
    const { alerts } = await ok("auditor", "GET", "/v1/alerts");
    expect(alerts).toContainEqual(
      expect.objectContaining({ kind: "effect_missing", run_id: run, step: 1, tool: "note.write" }),
    );
    const paper = await fetch(`${s.url}/v1/runs/${run}/report`, {
      headers: { authorization: "Bearer auditor" },
    });
    expect(await paper.text()).toContain("effect: missing, checked by agent");
  });

  it("a check that nobody ran leaves the step succeeded, and is reported", async () => {
    verifies("beyond.effect.not-checked", "beyond.effect.scope", "beyond.effect.off");
    const run = await opened();
    await ask(run, "note.write");
    expect(await end(run, 0, {})).toEqual({ step: 0, status: "succeeded", effect_check: "not checked" });
    expect(await ask(run, "note.far")).toEqual({ decision: "allow", step: 1 });
    // The run lacks the permission of the check's tool, so no observation of its agent counts.
    const far = await end(run, 1, { observed: { text: "canary" } });
    expect(far).toMatchObject({ status: "succeeded", effect_check: "not checked" });
    await ask(run, "note.plain");
    expect(await end(run, 2, { observed: { text: "anything" } })).toEqual({ step: 2, status: "succeeded" });
    await ask(run, "note.pretend");
    expect(await end(run, 3, { status: "failed", observed: { text: "old" } })).toEqual({
      step: 3,
      status: "failed",
    });
    // The check's arguments need the result, so nobody can have read what this agent says it observed.
    await ask(run, "note.blank");
    expect(await end(run, 4, { result: undefined, observed: { text: "canary" } })).toEqual({
      step: 4,
      status: "succeeded",
      effect_check: "not checked",
    });
    const ends = (await trail(run)).filter(({ event }) => event !== "intended");
    expect(ends.map(({ event, detail }) => [event, detail])).toEqual([
      ["succeeded", "effect: not checked"],
      ["succeeded", "effect: not checked"],
      ["succeeded", undefined],
      ["failed", undefined],
      ["succeeded", "effect: not checked"],
    ]);
  });

  it("an operator who finds the effect after all can undo the call", async () => {
    verifies("beyond.effect.resolve");
    const run = await opened();
    await ask(run, "note.write");
    await end(run, 0, { observed: { text: "old" } });
    await ok("operator", "POST", `/v1/runs/${run}/steps/0/resolve`, {
      status: "succeeded",
      note: "it was there a minute later",
    });
    const { actions } = await ok("operator", "GET", `/v1/runs/${run}/plan`);
    expect(actions).toMatchObject([{ step: 0, kind: "compensate", args: { id: "a" } }]);
  });
});

describe("the gateway", () => {
  let g: GatewayTest;
  beforeAll(async () => {
    const args = [fileURLToPath(new URL("./lying-upstream.mjs", import.meta.url))];
    g = await testGateway({
      manifests: MANIFESTS,
      upstreams: [{ name: "notes", command: process.execPath, args }],
    });
  });
  const made = async (tool: string, args: object = { id: tool, text: "new" }) => {
    const agent = await g.connect("agent");
    const answer = await call(agent, tool, args as Record<string, unknown>);
    const run_id = answer._meta["svc/run_id"] as string;
    return { answer, events: await g.events(run_id), found: answer._meta["svc/effect_check"] };
  };

  it.each([
    ["says success and did nothing", "note.pretend"],
    ["says success and did something else", "note.other"],
    ["says deleted and deleted nothing", "note.keep"],
  ])("finds out a tool that %s", async (_, tool) => {
    verifies("beyond.effect.gateway", "beyond.effect.missing");
    const agent = await g.connect("agent");
    if (tool === "note.keep") await call(agent, "note.write", { id: tool, text: "new" });
    const { answer, events, found } = await made(tool);
    expect(found).toBe("missing");
    expect(events).toEqual(["intended", "effect_missing", "uncertain"]);
    expect(answer.isError).toBe(true);
    expect(JSON.stringify(answer.content)).toContain("does not show what it reported");
  });

  it.each(["note.write", "note.later", "note.drop"])("believes %s, which did it", async (tool) => {
    verifies("beyond.effect.gateway", "beyond.effect.retries");
    const { answer, events, found } = await made(tool);
    expect([found, events]).toEqual(["held", ["intended", "succeeded"]]);
    expect(answer.isError).toBeFalsy();
  });

  it("counts a check that cannot be run as not checked", async () => {
    verifies("beyond.effect.not-checked");
    const { events, found } = await made("note.blind");
    expect([found, events]).toEqual(["not checked", ["intended", "succeeded"]]);
  });
});

describe("the library", () => {
  it("throws for a missing effect, and the command line shows the finding", async () => {
    verifies("beyond.effect.library", "beyond.effect.retries", "beyond.effect.shown");
    const folder = tempDir("effects");
    const [manifests, data] = [join(folder, "manifests.yaml"), join(folder, "data")];
    writeFileSync(manifests, MANIFESTS);
    const library = await open({ manifests, data });
    const run = await library.run({ actor: "bot", permissions: PERMISSIONS, run_id: "lib" });
    const notes = new Map<string, string>();
    let reads = 0;
    const read = (): JsonValue => ({ text: ++reads < 3 ? "old" : (notes.get("a") ?? "none") });
    const intent = (tool: string) => ({ tool, args: { id: "a", text: "new" }, reason: "r" });
    const really = () => {
      notes.set("a", "new");
      return { id: "a" };
    };
    await run.call(intent("note.later"), really, { read });
    notes.clear();
    const pretended = run.call(intent("note.pretend"), () => ({ id: "a" }), { read });
    await expect(pretended).rejects.toThrow(UncertainError);
    await run.call(intent("note.write"), really);
    const failing = () => Promise.reject(new Error("away"));
    await run.call(intent("note.write"), really, { read: failing });
    expect(await Promise.all([0, 1, 2, 3].map((step) => run.status(step)))).toEqual([
      "succeeded",
      "uncertain",
      "succeeded",
      "succeeded",
    ]);
    await library.close();
    const shown = await svc(["show", "lib", "-d", data, "-m", manifests], { env: { COLUMNS: "200" } });
    expect(shown.out).toContain("effect: held, checked by library");
    expect(shown.out).toContain("effect_missing");
    expect(shown.out).toContain("effect: not checked");
    expect(await svc(["verify", "-d", data, "-m", manifests])).toMatchObject({ code: 0 });
  });
});
