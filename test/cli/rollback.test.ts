import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { openStore } from "../../src/store/open.ts";
import { svc } from "../support/cli.ts";
import { afterInput, nodeCommand } from "../support/commands.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const folder = tempDir("rollback");
const manifests = join(folder, "manifests.yaml");
writeFileSync(
  manifests,
  `
- tool: thing.make
  effect: compensable
  permission: p
  compensation: {tool: thing.unmake, args: {id: $result.id}, residue: [a trace stays]}
  verification: {tool: thing.get, args: {id: $result.id}, expect: {gone: true}, retries: 0}
- {tool: thing.send, effect: irreversible, permission: p}
`,
);
const compensate = nodeCommand(
  `import fs from "node:fs"; fs.appendFileSync(${JSON.stringify(join(folder, "calls.jsonl"))}, fs.readFileSync(0, "utf8"));`,
);
const read = afterInput("console.log(JSON.stringify({gone: true}))");

async function made(data: string, tools: string[]): Promise<string> {
  const service = await open({ manifests, data, store: "files" });
  const run = await service.run({ actor: "bot", permissions: ["p"], run_id: "r" });
  for (const [i, tool] of tools.entries()) await run.call({ tool, args: {}, reason: "r" }, () => ({ id: i }));
  await service.close();
  return data;
}
const flags = (data: string) => ["-m", manifests, "-d", data];

describe("svc plan", () => {
  it("prints the plan without residue and exits 2 when not everything can be undone", async () => {
    verifies(
      "core.cli.plan",
      "core.cli.exit-2-plan",
      "core.rollback.plan-exit-2",
      "core.rollback.plan-text-no-residue",
    );
    const whole = await made(join(folder, "a"), ["thing.make"]);
    const plan = await svc(["plan", "r", ...flags(whole)]);
    expect(plan.code).toBe(0);
    expect(plan.out).toContain("run r: fully reversible");
    expect(plan.out).toMatch(/0 {2}thing\.make {2}compensate {2}thing\.unmake/);
    expect(plan.out).not.toContain("a trace stays");
    const json = JSON.parse((await svc(["plan", "r", "--json", ...flags(whole)])).out);
    expect(json.actions[0]).toMatchObject({ residue: ["a trace stays"] });
    const part = await made(join(folder, "b"), ["thing.make", "thing.send"]);
    const not = await svc(["plan", "r", ...flags(part)]);
    expect(not).toMatchObject({ code: 2, out: expect.stringContaining("cannot be undone") });
    expect((await svc(["plan", "none", ...flags(part)])).code).toBe(1);
  });
});

describe("svc plan after an undo that failed", () => {
  it("does not call the run fully reversible, and says how the undo failed", async () => {
    const data = await made(join(folder, "f"), ["thing.make"]);
    const failing = nodeCommand("console.error('the tool is gone'); process.exit(1);");
    const rollback = ["rollback", "r", "--retries", "1", "--compensator-cmd", failing, ...flags(data)];
    expect((await svc(rollback)).code).toBe(2);
    const plan = await svc(["plan", "r", ...flags(data)]);
    expect(plan.out).toContain("run r: reversible only if 1 undo that failed succeeds this time\n");
    expect(plan.out).toContain("failed before: after 1 attempt: ");
    expect(plan.out).not.toContain("fully reversible");
    const json = JSON.parse((await svc(["plan", "r", "--json", ...flags(data)])).out);
    expect(json.actions[0].last_error).toContain("the tool is gone");
  });
});

describe("svc rollback", () => {
  it("undoes with the commands given, and exits 0 only when nothing is left", async () => {
    verifies(
      "core.cli.rollback",
      "core.cli.exit-2-rollback",
      "contract.readings.compensator-cmd",
      "core.rollback.no-reader-unverified",
    );
    const data = await made(join(folder, "c"), ["thing.make", "thing.make"]);
    expect((await svc(["rollback", "r", ...flags(data)])).err).toContain("--compensator-cmd");
    for (const retries of ["0", "11", "NaN"]) {
      expect(
        (await svc(["rollback", "r", "--retries", retries, "--compensator-cmd", compensate, ...flags(data)]))
          .code,
      ).toBe(1);
    }
    const done = await svc(["rollback", "r", "--reader-cmd", read, "--json", ...flags(data)], {
      env: { SVC_COMPENSATOR_CMD: compensate },
    });
    expect(done.code).toBe(0);
    expect(JSON.parse(done.out)).toMatchObject({ compensated: [1, 0], complete: true });
    const blind = await made(join(folder, "d"), ["thing.make"]);
    const unread = await svc(["rollback", "r", "--compensator-cmd", compensate, ...flags(blind)]);
    expect(unread).toMatchObject({ code: 2, out: expect.stringContaining("unverified: 0") });
  });
});

describe("svc rollback after a crash", () => {
  it("waits for a dead process's lease, reports it, and completes", async () => {
    verifies("beyond.lease.wait", "beyond.lease.left-behind");
    const data = await made(join(folder, "crashed"), ["thing.make"]);
    // The crashed process's clock was a day ahead; its lease lasts for a moment only.
    const expires_ms = Date.now() + 86_400_000;
    const lease = { holder: "rollback/gone", epoch: 4, beat: 7, lasts_ms: 400, expires_ms };
    const store = await openStore({ store: "files", data, database_url: null, warn: () => {} });
    await store.transact({ run: (tx) => tx.put("leases", "rollback/r", lease) });
    await store.close();
    const done = await svc([
      "rollback",
      "r",
      ...flags(data),
      "--compensator-cmd",
      compensate,
      "--reader-cmd",
      read,
    ]);
    expect(done.err).toContain(
      "waiting up to 1 s: another process is rolling back this run, or was interrupted",
    );
    expect([done.code, done.out]).toEqual([0, expect.stringContaining("rollback complete")]);
  });
});

describe("svc runs --attention", () => {
  it("exits 2 where it lists a run, else 0", async () => {
    verifies("beyond.run-state.exit", "beyond.run-state.left");
    const data = await made(join(folder, "attended"), ["thing.make"]);
    const none = await svc(["runs", "--attention", ...flags(data)]);
    expect([none.code, none.out]).toEqual([0, ""]);
    // Without a reader the undo is not read back: the run needs a person, although its step is undone.
    await svc(["rollback", "r", ...flags(data), "--compensator-cmd", compensate]);
    const listed = await svc(["runs", "--attention", "--json", ...flags(data)]);
    expect(listed.code).toBe(2);
    expect(JSON.parse(listed.out)).toMatchObject({ run_id: "r", state: "needs attention" });
    expect((await svc(["runs", ...flags(data)])).code).toBe(0);
    const shown = await svc(["show", "r", ...flags(data)]);
    expect([shown.code, shown.out]).toEqual([2, expect.stringContaining(", needs attention\n")]);
    await svc(["rollback", "r", ...flags(data), "--compensator-cmd", compensate]);
    expect((await svc(["runs", "--attention", ...flags(data)])).code).toBe(0);
    expect((await svc(["show", "r", ...flags(data)])).code).toBe(0);
  });
});
