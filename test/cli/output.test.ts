/** What commands print and end with: the documented lines, exit codes, fallbacks, and one line for each mistake. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { loadSettings } from "../../src/config/load.ts";
import { intentUnit } from "../../src/govern/decide/intent.ts";
import { outcomeUnit } from "../../src/govern/decide/outcome.ts";
import { newRun, openRunUnit } from "../../src/govern/runs/open-run.ts";
import { systemEnv } from "../../src/kernel/env.ts";
import { openApp } from "../../src/service/open-app.ts";
import { firstBad } from "../contract/chain.ts";
import { principal } from "../support/engine.ts";
import { type SpeakOptions, speak } from "../support/io.ts";
import { freshDatabase } from "../support/postgres.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: crm.get, effect: read, permission: crm.read}
- {tool: crm.create, effect: compensable, permission: crm.read, compensation: {tool: crm.delete, args: {id: $result.id}}}
- {tool: mail.send, effect: irreversible, permission: mail.send}
`;
const POLICY = `
version: 1
rules:
  - {id: ask, match: {tool: mail.send}, action: require_approval, reason: ask}
tests:
  - {name: mail needs a person, input: {tool: mail.send}, expect: require_approval, rule: ask}
  - {name: reading is free, input: {tool: crm.get, args: {}}, expect: allow}
`;

let folder = "";
beforeEach(() => {
  folder = tempDir("out");
});
const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
const svc = (args: string[], options: Partial<SpeakOptions> = {}) => speak(args, { cwd: folder, ...options });

/** A data folder with one run: a read that worked, a creation that nobody reported, a mail that waits. */
async function seed(flags: Record<string, string> = {}): Promise<void> {
  write("manifests.yaml", MANIFESTS);
  write("policy.yaml", POLICY);
  const given = {
    manifests: join(folder, "manifests.yaml"),
    policy: join(folder, "policy.yaml"),
    data: join(folder, "data"),
    ...flags,
  };
  const app = await openApp(loadSettings({ flags: given, env: {}, cwd: folder }), systemEnv);
  const bot = principal("bot");
  const { core } = app;
  const { store } = core;
  await store.transact(
    openRunUnit(newRun(core, bot, { run_id: "r1", permissions: ["crm.read", "mail.send"] })),
  );
  for (const tool of ["crm.get", "crm.create", "mail.send"]) {
    await store.transact(
      intentUnit(core, bot, "r1", { tool, args: { id: "canary-9" }, reason: "r", depends_on: [] }),
    );
  }
  await store.transact(outcomeUnit(core, bot, "r1", 0, { status: "succeeded" }));
  await app.close();
}

describe("svc policy", () => {
  it("checks a policy and lists every problem with its place", async () => {
    verifies("core.policy-check.validates", "core.cli.policy-check");
    write("p.yaml", POLICY);
    expect(await svc(["policy", "check", join(folder, "p.yaml")])).toEqual({
      code: 0,
      out: "ok: 1 rule, 2 tests\n",
      err: "",
    });
    write("p.yaml", "version: 2\nrulez: []\nrules: [{id: a, action: denyy}]\n");
    const { code, out, err } = await svc(["policy", "check", join(folder, "p.yaml")]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(
      err
        .trimEnd()
        .split("\n")
        .map((line) => /p\.yaml:(\d+):\d+: /.exec(line)?.[1]),
    ).toEqual(["1", "2", "3"]);
  });

  it("runs a policy's tests", async () => {
    verifies(
      "core.policy-test.ok-line",
      "core.policy-test.passed-line",
      "core.policy-test.fail-line",
      "core.policy-test.fail-exit",
      "core.cli.policy-test",
    );
    write("p.yaml", POLICY);
    expect(await svc(["policy", "test", join(folder, "p.yaml")])).toEqual({
      code: 0,
      out: "ok  mail needs a person\nok  reading is free\n2 passed\n",
      err: "",
    });
    write("p.yaml", POLICY.replace("args: {}}, expect: allow", "args: {}}, expect: deny"));
    expect(await svc(["policy", "test", join(folder, "p.yaml")])).toEqual({
      code: 1,
      out: "ok  mail needs a person\nFAIL reading is free: expected deny, got allow\n1 passed, 1 failed\n",
      err: "",
    });
  });
});

describe("svc halt", () => {
  beforeEach(() => seed());
  const flags = ["-d", "data", "-m", "manifests.yaml"];
  const halt = (...args: string[]) => svc(["halt", ...args, ...flags]);

  it("adds halts with each scope, lists them, and lifts one or all", async () => {
    verifies(
      "core.cli.halt",
      "contract.readings.halt-add",
      "contract.readings.halt-lift",
      "core.halt-state.by-cli",
      "core.halt-state.lift-one",
      "core.halt-state.lift-all",
    );
    expect((await svc(["halt", "add", ...flags])).code).toBe(1);
    const scope = ["--tool", "crm.*", "--actor", "b*", "--tenant", "acme", "--environment", "prod"];
    const scoped = await halt("add", "--reason", "one", ...scope, "--as", "olga");
    expect(scoped.out).toMatch(
      /^halt_[0-9a-f-]{36} {2}tool crm\.\*, actor b\*, tenant acme, environment prod\n$/,
    );
    const id = scoped.out.split(" ")[0]!;
    expect((await halt("add", "--reason", "two")).out).toMatch(/ {2}everything\n$/);
    const { halts } = JSON.parse((await halt("list", "--json")).out);
    expect(halts).toEqual([
      {
        id,
        reason: "one",
        scope: { tool: "crm.*", actor: "b*", tenant: "acme", environment: "prod" },
        by: "olga",
        created_ms: expect.any(Number),
      },
      {
        id: expect.any(String),
        reason: "two",
        scope: { tool: null, actor: null, tenant: null, environment: null },
        by: "cli",
        created_ms: expect.any(Number),
      },
    ]);
    const listed = (await halt("list")).out;
    for (const { id: one, reason } of halts) expect(listed).toMatch(new RegExp(`^${one} .* ${reason}$`, "m"));
    expect((await halt("lift")).code).toBe(1);
    expect((await halt("lift", id, "--all")).code).toBe(1);
    expect((await halt("lift", "halt_none")).code).toBe(1);
    expect(await halt("lift", id)).toEqual({ code: 0, out: `lifted ${id}\n`, err: "" });
    expect((await halt("lift", "--all")).out).toBe(`lifted ${halts[1].id}\n`);
    expect(await halt("list")).toEqual({ code: 0, out: "", err: "no active halts\n" });
  });
});

describe("svc approvals", () => {
  beforeEach(() => seed());
  const flags = ["-d", "data", "-m", "manifests.yaml"];

  it("lists requests without a value, and decides them as somebody", async () => {
    verifies("core.cli.approvals-list", "core.cli.approvals-approve");
    const { out } = await svc(["approvals", "list", "--json", ...flags]);
    const [request] = JSON.parse(out).approvals;
    expect(request).toMatchObject({ status: "pending", tool: "mail.send", arg_names: ["id"] });
    const text = (await svc(["approvals", "list", "--status", "pending", ...flags])).out;
    expect(text).toBe(`${request.id}  pending  mail.send  r1  bot  (id)\n`);
    expect(text + out).not.toContain("canary-9");
    const approve = () =>
      svc(["approvals", "approve", request.id, "--as", "olga", "--note", "looks fine", ...flags]);
    const approved = await approve();
    expect(approved).toMatchObject({ code: 0, out: `${request.id}: approved\n` });
    expect(approved.err).toContain(`Request   ${request.id}`);
    expect((await approve()).code).toBe(1);
    const after = JSON.parse((await svc(["approvals", "list", "--json", ...flags])).out).approvals[0];
    expect(after).toMatchObject({ status: "approved", decided_by: "olga", note: "looks fine" });
    expect((await svc(["approvals", "list", "--status", "pending", ...flags])).err).toBe("no requests\n");
  });
});

describe("svc export", () => {
  it("prints the lines that were hashed, and those of one run", async () => {
    verifies(
      "contract.export.same-lines",
      "contract.export.files-store",
      "core.cli.export",
      "core.event.trail-cli",
      "core.purpose.ledger-hash-chained",
    );
    await seed();
    const { code, out, err } = await svc(["export", "-d", "data"]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(firstBad(out.trimEnd().split("\n"))).toBe(-1);
    expect(out).toBe(readFileSync(join(folder, "data", "ledger.jsonl"), "utf8"));
    const flags = ["-d", "data", "-m", "manifests.yaml"];
    await svc(["halt", "add", "--reason", "x", ...flags]);
    const run = (await svc(["export", "--run", "r1", "-d", "data"])).out;
    expect(run).toBe(out);
    expect((await svc(["export", "-d", "data"])).out.split("\n")).toHaveLength(run.split("\n").length + 1);
    expect(run).not.toContain("canary-9");
  });
});

describe("svc verify", () => {
  it("checks the ledger of each store without any key, and names the first bad record", async () => {
    verifies(
      "core.cli.verify",
      "contract.readings.verify-command-needs-none",
      "ops.evidence.verify-ledger",
      "ops.evidence.verify-first-bad",
    );
    for (const store of ["files", "sqlite"]) {
      await seed({ store, data: join(folder, store) });
      const { code, out } = await svc(["verify", "-d", store, "--store", store]);
      expect([store, code]).toEqual([store, 0]);
      expect(out).toMatch(/^ok: 4 records, head [0-9a-f]{64}$/m);
    }
    const ledger = join(folder, "files", "ledger.jsonl");
    writeFileSync(ledger, readFileSync(ledger, "utf8").replace('"tool":"crm.create"', '"tool":"crm.cheats"'));
    const { code, out } = await svc(["verify", "-d", "files"]);
    expect(code).toBe(1);
    expect(out).toMatch(/^INVALID: record 1: /);
  });
});

describe("-d, -m and --store", () => {
  it("fall back to the environment, then to the config file, for every command", async () => {
    verifies(
      "contract.readings.options-fall-back",
      "core.cli.option-manifests",
      "core.cli.option-data",
      "core.cli.option-store",
    );
    await seed({ store: "sqlite" });
    const commands = [
      ["runs", "--json"],
      ["export"],
      ["halt", "list", "--json"],
      ["approvals", "list", "--json"],
      ["plan", "r1", "--json"],
    ];
    const flags = ["-d", "data", "-m", "manifests.yaml", "--store", "sqlite"];
    const wanted = await Promise.all(commands.map((command) => svc([...command, ...flags])));
    expect(wanted.every(({ out }) => out !== "")).toBe(true);
    const env = { SVC_DATA: "data", SVC_MANIFESTS: "manifests.yaml", SVC_STORE: "sqlite" };
    for (const [i, command] of commands.entries()) expect(await svc(command, { env })).toEqual(wanted[i]);
    write("svc.config.yaml", "data: data\nmanifests: manifests.yaml\nstore: sqlite\n");
    for (const [i, command] of commands.entries()) expect(await svc(command)).toEqual(wanted[i]);
    write("svc.config.yaml", "data: elsewhere\nstore: files\n");
    for (const [i, command] of commands.entries()) expect(await svc(command, { env })).toEqual(wanted[i]);
    const wrong = { SVC_DATA: "elsewhere", SVC_MANIFESTS: "none.yaml", SVC_STORE: "files" };
    for (const [i, command] of commands.entries())
      expect(await svc([...command, ...flags], { env: wrong })).toEqual(wanted[i]);
  });

  it("take the database of --store postgres from SVC_DATABASE_URL", async () => {
    verifies("contract.readings.database-url");
    const { url, drop } = await freshDatabase();
    onTestFinished(drop);
    const env = { SVC_DATABASE_URL: url };
    expect((await svc(["halt", "add", "--reason", "drill", "--store", "postgres"], { env })).code).toBe(0);
    expect((await svc(["export", "--store", "postgres"], { env })).out).toContain('"event":"halted"');
    const none = await svc(["runs", "--store", "postgres"]);
    expect(none.code).toBe(1);
    expect(none.err).toContain("SVC_DATABASE_URL");
  });
});

describe("plain text and JSON", () => {
  it("--json of a list is one document, also without entries", async () => {
    verifies("beyond.first.json-lists");
    await seed();
    await svc(["halt", "add", "--actor", "bot", "--reason", "a drill", "-d", "data"]);
    const lists: [name: string, ...command: string[]][] = [
      ["incidents", "incidents", "--all"],
      ["captures", "capture", "list"],
      ["approvals", "approvals", "list"],
      ["plans", "plans", "list"],
      ["grants", "grants", "list"],
      ["halts", "halt", "list"],
    ];
    const flags = ["--json", "-d", "data", "-m", "manifests.yaml"];
    for (const [name, ...command] of lists) {
      const { code, out } = await svc([...command, ...flags]);
      const entries = ["incidents", "halts", "approvals"].includes(name) ? 1 : 0;
      expect([name, code, JSON.parse(out)[name].length]).toEqual([
        name,
        name === "incidents" ? 2 : 0,
        entries,
      ]);
    }
  });

  it("use the same words", async () => {
    verifies("contract.readings.same-words");
    await seed();
    const flags = ["-d", "data", "-m", "manifests.yaml"];
    const json = JSON.parse((await svc(["plan", "r1", "--json", ...flags])).out);
    const text = (await svc(["plan", "r1", ...flags])).out;
    for (const { step, tool, kind } of json.actions) {
      expect(text).toMatch(new RegExp(`^ +${step} +${tool.replace(".", "\\.")} +${kind}\\b`, "m"));
    }
    expect(json.actions.map(({ kind }: { kind: string }) => kind)).toEqual(["unresolved", "skip"]);
    const resolved = await svc([
      "resolve",
      "r1",
      "1",
      "--status",
      "succeeded",
      "--note",
      "n",
      "--result",
      '{"id":1}',
      ...flags,
    ]);
    expect(resolved.out).toBe("step 1 of r1: succeeded\n");
    const run = JSON.parse((await svc(["runs", "--json", ...flags])).out);
    expect(run).toMatchObject({ run_id: "r1", mode: "enforce", steps: 2, unresolved: 0 });
    expect((await svc(["runs", ...flags])).out).toMatch(/^r1 {2}\S+ {2}bot {2}enforce {2}2 steps {2}open$/m);
  });
});

describe("exit codes", () => {
  it("are 0 for success and 1 for failure", async () => {
    verifies("core.cli.exit-0", "core.cli.exit-1");
    write("good.yaml", MANIFESTS);
    write("bad.yaml", "- {tool: a}\n");
    write("policy.yaml", POLICY.replace("expect: allow", "expect: deny"));
    expect((await svc(["validate", join(folder, "good.yaml")])).code).toBe(0);
    expect((await svc(["--help"])).code).toBe(0);
    expect((await svc(["help", "halt"])).code).toBe(0);
    expect((await svc(["validate", join(folder, "bad.yaml")])).code).toBe(1);
    expect((await svc(["policy", "test", join(folder, "policy.yaml")])).code).toBe(1);
    expect((await svc(["export", "--run", "none", "-d", "data"])).code).toBe(1);
    expect((await svc([])).code).toBe(1);
    expect((await svc(["halt"])).code).toBe(1);
    expect((await svc(["halt", "nope"])).code).toBe(1);
  });
});

describe("a file that is none", () => {
  const odd = tempDir("odd");
  beforeAll(() => {
    mkdirSync(join(odd, "folder"));
    writeFileSync(join(odd, "binary"), Buffer.from([0xff, 0xfe, 0x00]));
    execFileSync("mkfifo", [join(odd, "pipe")]);
  });

  describe.each([
    ["policy", "check"],
    ["policy", "test"],
    ["config", "check"],
    ["validate"],
    ["keys", "list", "--keys"],
  ])("%s %s %s", (...command) => {
    it.each(["missing", "folder", "pipe", "/dev/zero", "binary", "missing/deeper"])("%s", async (path) => {
      // A folder of manifests is a fine thing.
      if (command[0] === "validate" && path === "folder") return;
      const words = command.filter((word) => word !== undefined);
      const { code, out, err } = await speak([...words, resolve(odd, path)], { cwd: odd });
      expect({ code, out }).toEqual({ code: 1, out: "" });
      expect(err.trimEnd().split("\n")).toHaveLength(1);
      expect(err).toContain(path);
      expect(err).not.toMatch(/\n {4}at |undefined|\[object/);
    });
  });
});

describe("a mistake in the words", () => {
  it.each([
    [["runs", "--no-such-flag"], /unknown option '--no-such-flag'/],
    [["halts"], /unknown command 'halts'/],
    [["runs", "--store", "oracle"], /--store: must be one of files, sqlite, postgres/],
    [["rollback", "r", "--compensator-cmd", "true", "--retries", "0"], /retries/],
    [["rollback", "r", "--compensator-cmd", "true", "--retries", "11"], /retries/],
    [["rollback", "r", "--compensator-cmd", "true", "--retries", "NaN"], /retries/],
    [["resolve", "r", "x", "--status", "failed", "--note", "n"], /step/],
    [["resolve", "r", "0", "--status", "failed", "--note", "n", "--result", "{"], /result/],
    [["server", "--port", "70000"], /--port/],
    [["runs", "--config", "a\u0000b"], /NUL/],
  ])("%j is one clear message and exit 1", async (args, why) => {
    const { code, out, err } = await svc(args);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(why);
    expect(err).not.toMatch(/\n {4}at /);
  });
});

describe("text from elsewhere", () => {
  it("cannot drive the terminal", async () => {
    await seed();
    const flags = ["-d", "data", "-m", "manifests.yaml"];
    await svc(["halt", "add", "--reason", "a\u001b[2J\u202eb\nforged\u200b line", ...flags]);
    const { out } = await svc(["halt", "list", ...flags]);
    expect(out).not.toMatch(/[\u001b\u202e\u200b]/);
    expect(out.trimEnd().split("\n")).toHaveLength(1);
  });
});
