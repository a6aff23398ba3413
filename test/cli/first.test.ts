/** What the command line says of the data it is pointed at, and that looking makes nothing. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { openEmbedded as open } from "../../src/library/open.ts";
import { speak } from "../support/io.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

let folder = "";
beforeEach(() => {
  folder = tempDir("first");
  writeFileSync(
    join(folder, "manifests.yaml"),
    "- {tool: crm.get, effect: read, permission: crm.read}\n- {tool: mail.send, effect: irreversible, permission: mail.send}\n",
  );
});
const svc = (args: string[]) => speak(args, { cwd: folder });

/** Two runs: one that ended well, one with a failed call and a call whose outcome is unknown. */
async function seed(store: "files" | "sqlite"): Promise<void> {
  const service = await open({
    manifests: join(folder, "manifests.yaml"),
    store,
    data: join(folder, "data"),
  });
  const permissions = ["crm.read", "mail.send"];
  const good = await service.run({
    run_id: "good",
    actor: "ann-bot",
    permissions,
    reason: "look a customer up",
  });
  await good.call({ tool: "crm.get", args: {}, reason: "look" }, () => ({}));
  const bad = await service.run({ run_id: "bad", actor: "bob-bot", permissions, reason: "mail everybody" });
  const fail = () => {
    throw new Error("no route");
  };
  await bad.call({ tool: "mail.send", args: {}, reason: "try" }, fail).catch(() => {});
  await bad.intent({ tool: "mail.send", args: { again: true }, reason: "try again" });
  await service.close();
}

describe("svc runs", () => {
  it("shows why and how each run ended, and finds by filters", async () => {
    verifies("beyond.first.runs", "beyond.first.store-found");
    await seed("sqlite");
    const { out } = await svc(["runs", "-d", "data"]);
    expect(out).toMatch(/^good {2}\S+ {2}ann-bot {2}enforce {2}1 step {3,}open {2,}look a customer up$/m);
    expect(out).toMatch(
      /^bad {3}\S+ {2}bob-bot {2}enforce {2}2 steps {2}open, 1 unresolved, a step failed {2}mail everybody$/m,
    );
    const ids = async (...args: string[]) =>
      (await svc(["runs", "-d", "data", "--json", ...args])).out
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).run_id);
    expect(await ids("--status", "failed")).toEqual(["bad"]);
    expect(await ids("--actor", "ann-bot")).toEqual(["good"]);
    expect(await ids("--tool", "mail.send", "--since", "1h")).toEqual(["bad"]);
    expect(await ids("--find", "customer")).toEqual(["good"]);
    expect((await svc(["runs", "-d", "data", "--attention"])).err).toBe("no matching runs\n");
    expect((await svc(["runs", "-d", "data", "--status", "odd"])).code).toBe(1);
  });
});

describe("a data folder", () => {
  it("is read by the store that made it, and not by another", async () => {
    verifies("beyond.first.store-found");
    await seed("sqlite");
    const before = readdirSync(join(folder, "data")).filter((name) => !name.startsWith("svc."));
    expect((await svc(["verify", "-d", "data"])).out).toMatch(/^ok: 5 records/);
    expect((await svc(["export", "-d", "data"])).out).toContain('"tool":"crm.get"');
    const around = (await svc(["runs", "-d", "."])).err;
    expect(around).toContain(`contains no store; pass the data directory with -d ${join(folder, "data")}`);
    const { code, err } = await svc(["runs", "-d", "data", "--store", "files"]);
    expect([code, err]).toEqual([
      1,
      expect.stringContaining("contains a store of kind sqlite; use --store sqlite"),
    ]);
    expect(readdirSync(join(folder, "data")).filter((name) => !name.startsWith("svc."))).toEqual(before);
  });

  it("is not made by a command that only looks", async () => {
    verifies("beyond.first.reads-make-nothing");
    mkdirSync(join(folder, "bare"));
    for (const command of [
      ["runs"],
      ["show", "r"],
      ["export"],
      ["plan", "r"],
      ["resolve", "r", "0", "--status", "failed", "--note", "n"],
      ["horizon"],
      ["halt", "list"],
      ["halt", "lift", "--all"],
      ["approvals", "list"],
      ["plans", "list"],
      ["grants", "list"],
      ["hold", "list"],
      ["capture", "list"],
      ["retention", "plan"],
    ]) {
      const none = await svc([...command, "-d", "none"]);
      expect([none.code, none.out], command.join(" ")).toEqual([1, ""]);
      expect(none.err).toContain("is not a data directory; pass one with -d <dir>");
      expect((await svc([...command, "-d", "bare"])).err).toContain("contains no store");
    }
    expect((await svc(["impact", "crm.get", "-m", "manifests.yaml", "-d", "none"])).out).toContain("crm.get");
    expect(existsSync(join(folder, "none"))).toBe(false);
    expect(readdirSync(join(folder, "bare"))).toEqual([]);
  });
});
