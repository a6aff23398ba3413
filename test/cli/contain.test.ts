/** `svc contain` as a person runs it, on local data and against a server. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { type ServerProcess, startSvcServer, svc } from "../support/cli.ts";
import { afterInput, undoesAll } from "../support/commands.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const folder = tempDir("contain-cli");
const at = (name: string) => join(folder, name);
writeFileSync(
  at("manifests.yaml"),
  `
- {tool: thing.make, effect: compensable, permission: p, compensation: {tool: thing.unmake, args: {id: $result.id}}}
- {tool: thing.send, effect: irreversible, permission: p}
`,
);
const undo = undoesAll();
const entry = (name: string, role: string) => ({
  name,
  role,
  max_permissions: ["*"],
  key_sha256: sha256Hex(name),
});
const writeKeys = (name: string) =>
  writeFileSync(at(name), JSON.stringify([entry("boss", "admin"), entry("bot", "agent")]), { mode: 0o600 });

async function made(data: string, actor: string, tools: string[]): Promise<void> {
  const service = await open({ manifests: at("manifests.yaml"), data: at(data), store: "files" });
  const run = await service.run({ actor, permissions: ["p"], run_id: `run-${actor}` });
  for (const [i, tool] of tools.entries()) await run.call({ tool, args: {}, reason: "r" }, () => ({ id: i }));
  await service.close();
}
const flags = (data: string) => ["-m", at("manifests.yaml"), "-d", at(data)];
const events = (data: string): string[] =>
  readFileSync(join(at(data), "ledger.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).event);

describe("svc contain on local data", () => {
  it("says it all beforehand, does it, and exits 2 where something is left", async () => {
    verifies("beyond.contain.cli", "beyond.contain.keys", "beyond.contain.no-rollback");
    writeKeys("keys.json");
    await made("a", "bot", ["thing.make", "thing.send"]);
    await made("a", "fine", ["thing.make"]);
    const before = events("a");
    const whom = ["contain", "--actor", "bot", "--reason", "it went mad", "--keys", at("keys.json")];
    const undoing = ["--compensator-cmd", undo, ...flags("a")];
    const dry = await svc([...whom, "--dry-run", ...undoing]);
    expect(dry.code).toBe(2);
    expect(dry.out).toContain("would contain: bot\n");
    expect(dry.out).toContain("    to undo: 0 thing.make\n    not undone: 1 thing.send: cannot be undone\n");
    verifies("beyond.first.contain-words");
    expect(dry.out).not.toMatch(/(cannot be undone|not undone).*\1/);
    expect(dry.out).toContain("1 step to undo, 1 left");
    expect(events("a")).toEqual(before);

    const done = await svc([...whom, "--as", "ada", ...undoing]);
    expect([done.code, done.err]).toEqual([
      2,
      expect.stringMatching(/^containment ctn_\S+: the halt is active\n$/),
    ]);
    expect(done.out).toMatch(/^contained: bot\n {2}halted \(halt_\S+\)\n {2}keys disabled: bot \(/);
    expect(done.out).toContain("    undone: 0 thing.make\n");
    expect(done.out).toContain(
      "  no bundles: no signing key is configured (SVC_SIGNING_KEY)\n1 step undone, 1 left\n",
    );
    expect(events("a").slice(before.length)).toEqual([
      "halted",
      "key_changed",
      "compensating",
      "compensated",
      "contained",
    ]);
    expect(JSON.parse(readFileSync(at("keys.json"), "utf8"))).toMatchObject([
      { name: "boss" },
      { disabled: true },
    ]);
    const again = await svc([...whom, ...undoing]);
    expect([again.code, again.out]).toEqual([2, done.out]);
    expect(events("a").filter((event) => event === "contained")).toHaveLength(1);

    const whole = await svc(["contain", "--actor", "fine", "--reason", "r", "--json", ...undoing]);
    expect([whole.code, JSON.parse(whole.out)]).toMatchObject([0, { actors: ["fine"], complete: true }]);
  });

  it("prints the steps that ended otherwise than previewed", async () => {
    verifies("beyond.previews.shown");
    await made("d", "hopeful", ["thing.make"]);
    const fails = ["--compensator-cmd", afterInput("process.exit(1)"), ...flags("d")];
    const whom = ["contain", "--actor", "hopeful", "--reason", "r"];
    expect((await svc([...whom, "--dry-run", ...fails])).out).toContain("1 step to undo, nothing left");
    const done = await svc([...whom, ...fails]);
    expect(done.code).toBe(2);
    expect(done.out).toMatch(
      /otherwise than previewed: run run-hopeful step 0 thing\.make: previewed undone; happened .*exited/,
    );
  });

  it("names the problem, and does nothing", async () => {
    verifies("beyond.contain.bad-input", "beyond.contain.several");
    await made("b", "bot-1", ["thing.make"]);
    await made("b", "bot-2", []);
    for (const [args, says] of [
      [["--actor", "bot-1"], "--reason"],
      [["--actor", "bot-*", "--reason", "r"], "send expect_actors: 2"],
      [["--actor", "bot-*", "--reason", "r", "--expect-actors", "two"], "--expect-actors"],
    ] as const) {
      const refused = await svc(["contain", ...args, ...flags("b")]);
      expect([args, refused.code]).toEqual([args, 1]);
      expect(refused.err).toContain(says);
    }
    expect(events("b")).toEqual(["intended", "succeeded"]);
    const both = await svc([
      ...["contain", "--actor", "bot-*", "--reason", "r", "--expect-actors", "2", "--no-rollback"],
      ...flags("b"),
    ]);
    expect(both.code).toBe(2);
    expect(both.out).toContain("not undone: no rollback was requested");
    expect(events("b")).toEqual(["intended", "succeeded", "halted", "contained"]);
  });
});

describe("svc contain against a server", () => {
  let server: ServerProcess;
  beforeAll(async () => {
    writeKeys("server-keys.json");
    writeFileSync(at("boss.key"), "boss", { mode: 0o600 });
    await made("c", "bot", ["thing.make"]);
    server = await startSvcServer([...flags("c"), "--keys", at("server-keys.json")], {
      env: { SVC_COMPENSATOR_CMD: undo },
    });
  });
  afterAll(() => server?.stop());

  it("waits for the server's job, and prints its report", async () => {
    verifies("beyond.contain.cli");
    const remote = ["--server", server.url, "--key-file", at("boss.key")];
    const done = await svc(["contain", "--actor", "bot", "--reason", "it went mad", ...remote]);
    expect([done.code, done.out]).toEqual([0, expect.stringContaining("1 step undone, nothing left\n")]);
    expect(done.out).toContain("  run run-bot (bot)\n    undone: 0 thing.make\n");
  });
});
