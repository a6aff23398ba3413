/** `svc retention` and `svc hold`: the documented lines, and that a dry run changes nothing. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { loadSettings } from "../../src/config/load.ts";
import { newKeyPair } from "../../src/evidence/signing.ts";
import { intentUnit } from "../../src/govern/decide/intent.ts";
import { newRun, openRunUnit } from "../../src/govern/runs/open-run.ts";
import { openApp } from "../../src/service/open-app.ts";
import { svc as runSvc } from "../support/cli.ts";
import { principal } from "../support/engine.ts";
import { type FakeEnv, fakeEnv } from "../support/env.ts";
import { speak } from "../support/io.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const DAY = 86_400_000;
/** Ends the process without a word when it begins to write into a file it has opened. */
const KILLED_AT_WRITING = `data:text/javascript,${encodeURIComponent(`
  import { open } from "node:fs/promises";
  const file = await open(process.execPath);
  Object.getPrototypeOf(file).writeFile = () => process.kill(process.pid, "SIGKILL");
  await file.close();
`)}`;
let folder = "";
let clock: FakeEnv;
beforeEach(async () => {
  folder = tempDir("retention");
  // Real processes see the runs as old as this one does.
  clock = fakeEnv({ now: Date.now() - 35 * DAY });
  writeFileSync(join(folder, "manifests.yaml"), "- {tool: crm.get, effect: read, permission: p}\n");
  writeFileSync(join(folder, "policy.yaml"), "version: 1\nretention: {default_days: 30}\n");
  writeFileSync(
    join(folder, "svc.config.yaml"),
    "manifests: manifests.yaml\npolicy: policy.yaml\ndata: data\nlog: {level: error}\n",
  );
  const app = await openApp(loadSettings({ env: {}, cwd: folder }), clock);
  const bot = principal("bot");
  for (const run_id of ["old", "new"]) {
    if (run_id === "new") await clock.advance(25 * DAY);
    await app.core.store.transact(openRunUnit(newRun(app.core, bot, { run_id, permissions: ["p"] })));
    const input = { tool: "crm.get", args: {}, reason: "r", depends_on: [] };
    await app.core.store.transact(intentUnit(app.core, bot, run_id, input));
  }
  await clock.advance(10 * DAY);
  await app.close();
});
const svc = (...args: string[]) => speak(args, { cwd: folder, clock });

describe("svc retention", () => {
  it("plans: a row per run with its age, how long it is kept, and the decision", async () => {
    verifies("ops.retention-plan.lists", "ops.retention-plan.days");
    expect(await svc("retention", "plan")).toEqual({
      code: 0,
      out: "old  35 days old  kept for 30 days  due\nnew  10 days old  kept for 30 days  keep\n",
      err: "",
    });
    expect((await svc("retention", "plan", "--days", "40")).out).toBe(
      "old  35 days old  kept for 40 days  keep\nnew  10 days old  kept for 40 days  keep\n",
    );
    expect((await svc("retention", "plan", "--days", "0")).code).toBe(1);
  });

  it("applies, lists deleted and kept runs, and changes nothing with --dry-run", async () => {
    verifies(
      "ops.retention-apply.deleted-line",
      "ops.retention-apply.dry-run",
      "ops.retention-apply.kept-line",
      "ops.retention-apply.options",
    );
    const kept = "kept new: 10 of 30 days old\n";
    expect((await svc("retention", "apply", "--dry-run")).out).toBe(`would delete: old\n${kept}`);
    expect((await svc("runs")).out).toContain("old");
    writeFileSync(join(folder, "sign.key"), newKeyPair().private_pem, { mode: 0o600 });
    const archive = tempDir("archive");
    const applied = await svc(
      "retention",
      "apply",
      "--archive-dir",
      archive,
      "--key",
      join(folder, "sign.key"),
      "--as",
      "olga",
    );
    expect(applied).toEqual({ code: 0, out: `deleted: old\n${kept}`, err: "" });
    expect(existsSync(join(archive, "old.json"))).toBe(true);
    expect((await svc("runs")).out).not.toContain("old");
    const records = (await svc("export", "--run", "old")).out.trimEnd().split("\n");
    expect(JSON.parse(records.at(-1)!)).toMatchObject({
      event: "purged",
      actor: "olga",
      detail: `retention: older than 30 days; archived to ${join(archive, "old.json")}`,
    });
    expect((await svc("retention", "apply", "--days", "5")).out).toBe("deleted: new\n");
    expect((await svc("retention", "apply")).err).toBe("no runs\n");
  });

  it("keeps each run that was to be archived where no key is given, and names it", async () => {
    const archive = join(tempDir("archive"), "none");
    const why =
      "it must be archived first, and archives need a signing key: set signing_key (SVC_SIGNING_KEY), or pass --key to the command";
    const kept = { code: 0, out: `kept old: ${why}\nkept new: 10 of 30 days old\n`, err: "" };
    expect(await svc("retention", "apply", "--archive-dir", archive)).toEqual(kept);
    expect(await svc("retention", "apply", "--archive-dir", archive, "--dry-run")).toEqual(kept);
    expect(existsSync(archive)).toBe(false);
  });

  it("asks for attention where a run could not be archived", async () => {
    writeFileSync(join(folder, "sign.key"), newKeyPair().private_pem, { mode: 0o600 });
    const archive = tempDir("archive");
    writeFileSync(join(archive, "old.json"), "not an archive");
    const args = ["retention", "apply", "--archive-dir", archive, "--key", join(folder, "sign.key")];
    const refused = await svc(...args);
    expect(refused).toMatchObject({ code: 2, err: "" });
    expect(refused.out).toMatch(/^kept old: it could not be archived: .* move it away/m);
    rmSync(join(archive, "old.json"));
    expect(await svc(...args)).toMatchObject({ code: 0, out: expect.stringMatching(/^deleted: old$/m) });
  });

  it("killed while it writes an archive, deletes the run the next time", async () => {
    writeFileSync(join(folder, "sign.key"), newKeyPair().private_pem, { mode: 0o600 });
    const archive = tempDir("archive");
    const args = ["retention", "apply", "--archive-dir", archive, "--key", join(folder, "sign.key")];
    const killed = await runSvc(args, {
      cwd: folder,
      env: { NODE_OPTIONS: `--import ${KILLED_AT_WRITING}` },
    });
    expect(killed).toMatchObject({ code: null, out: "" });
    expect(existsSync(join(archive, "old.json"))).toBe(false);
    expect(await runSvc(args, { cwd: folder })).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^deleted: old$/m),
    });
    expect(JSON.parse(readFileSync(join(archive, "old.json"), "utf8"))).toMatchObject({ run_id: "old" });
  });

  it("is refused without the section", async () => {
    writeFileSync(join(folder, "policy.yaml"), "version: 1\n");
    for (const verb of ["plan", "apply"]) {
      expect(await svc("retention", verb)).toEqual({
        code: 1,
        out: "",
        err: "error: no retention settings\n",
      });
    }
  });
});

describe("svc hold", () => {
  it("adds, lists and releases holds", async () => {
    verifies("contract.readings.hold-cli", "ops.hold-cli.add", "ops.hold-cli.list", "ops.hold-cli.release");
    const scope = ["--run", "old", "--actor", "bot", "--tool", "crm.get"];
    const added = await svc("hold", "add", ...scope, "--reason", "lawsuit 7", "--as", "olga");
    expect(added.out).toMatch(/^hold_[0-9a-f-]{36} {2}run_id old, actor bot, tool crm\.get\n$/);
    const id = added.out.split(" ")[0]!;
    const tenant = (await svc("hold", "add", "--tenant", "acme", "--reason", "lawsuit 8")).out;
    expect(tenant).toMatch(/ {2}tenant acme\n$/);
    expect((await svc("hold", "add", "--reason", "lawsuit 9")).err).toBe(
      "error: a legal hold needs a scope (a run, tenant, actor or tool)\n",
    );
    expect((await svc("hold", "add", "--run", "old", "--reason", "four")).code).toBe(1);
    expect((await svc("retention", "apply")).out).toContain(`kept old: legal hold ${id}: lawsuit 7\n`);
    expect(await svc("hold", "release", id)).toEqual({ code: 0, out: `released ${id}\n`, err: "" });
    expect((await svc("hold", "release", id)).code).toBe(1);
    expect((await svc("hold", "list")).out).not.toContain(id);
    const all = (await svc("hold", "list", "--all")).out;
    expect(all).toMatch(new RegExp(`^${id} +released .* olga +lawsuit 7$`, "m"));
    expect(JSON.parse((await svc("hold", "list", "--all", "--json")).out).holds).toHaveLength(2);
    expect((await svc("retention", "apply")).out).toContain("deleted: old\n");
  });
});
