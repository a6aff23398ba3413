/** `svc backup` of a live server, unpacked with the system's own tar: the copy verifies, starts, and continues. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openStore } from "../../src/store/open.ts";
import { speak } from "../support/io.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

type Kind = "files" | "sqlite";

async function serverOn(store: Kind, data: string): Promise<TestServer> {
  const warnings: string[] = [];
  const opened = await openStore({ store, data, database_url: null, warn: (text) => warnings.push(text) });
  expect(warnings).toEqual([]);
  return testServer({ store: opened });
}

const ask = ({ call }: TestServer) =>
  call("agent", "POST", "/v1/runs/r/intents", {
    tool: "crm.get",
    args: { secret: "s3cr3t" },
    reason: "look",
  });

/** A server with a run, and somebody who asks all the time. */
async function busy(store: Kind) {
  const place = tempDir(`backup-${store}`);
  const data = join(place, "data");
  const server = await serverOn(store, data);
  await server.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["crm.read"] });
  await ask(server);
  let is_over = false;
  const asking = (async () => {
    for (let step = 1; !is_over; step++)
      expect(await ask(server)).toMatchObject({ status: 200, body: { step } });
  })();
  const stop = async () => {
    is_over = true;
    await asking;
  };
  return { place, data, server, stop };
}

describe.each(["files", "sqlite"] as const)("a backup of a live %s store", (store) => {
  it("is one file, verifies with the head that was printed, and is gone on from", async () => {
    verifies("beyond.backup.live", "beyond.backup.restores");
    const { place, data, stop } = await busy(store);
    const cwd = place;
    const told = await speak(["backup", "-d", data, "--out", "svc.tar"], { cwd });
    await stop();
    expect(told).toMatchObject({ code: 0, err: "" });
    const [, records, head] = /: \w+ store, (\d+) records, head ([0-9a-f]{64})\n/.exec(told.out)!;
    expect(told.out).toContain("tar -xf '");
    expect(readdirSync(place).sort()).toEqual(["data", "svc.tar"]);
    expect(statSync(join(place, "svc.tar")).mode & 0o777).toBe(0o600);

    const copy = join(place, "copy");
    mkdirSync(copy);
    execFileSync("tar", ["-xf", join(place, "svc.tar"), "-C", copy]);
    const expected =
      store === "files" ? ["journal-1.jsonl", "ledger.jsonl", "state.db"] : ["svc.checkpoint", "svc.db"];
    expect(readdirSync(copy).sort()).toEqual(expected);
    for (const name of expected) expect(statSync(join(copy, name)).mode & 0o777).toBe(0o600);
    const checked = await speak(["verify", "-d", copy], { cwd });
    expect(checked.out).toContain(`ok: ${records} records, head ${head}\n`);

    const restored = await serverOn(store, copy);
    const { body: run } = await restored.call("auditor", "GET", "/v1/runs/r");
    expect(await ask(restored)).toMatchObject({ status: 200, body: { step: run.steps.length } });
    const after = await speak(["verify", "-d", copy], { cwd });
    expect(after.out).toContain(`ok: ${Number(records) + 1} records`);
  });
});

describe("svc backup", () => {
  it("replaces nothing, makes no store, and says where PostgreSQL and servers are backed up", async () => {
    verifies("beyond.backup.refusals");
    const cwd = tempDir("backup");
    const data = join(cwd, "data");
    const store = await openStore({ store: "files", data, database_url: null, warn: () => {} });
    await store.close();
    writeFileSync(join(cwd, "kept"), "mine");
    const backup = (...args: string[]) =>
      speak(["backup", ...args], { cwd, env: { SVC_TOKEN: "k", SVC_DATABASE_URL: "postgres://h/d" } });
    const refused = async (args: string[], why: RegExp) =>
      expect(await backup(...args)).toMatchObject({ code: 1, out: "", err: expect.stringMatching(why) });

    await refused(["-d", data, "--out", "kept"], /kept: already exists/);
    expect(readFileSync(join(cwd, "kept"), "utf8")).toBe("mine");
    await refused(["-d", data, "--out", "no/such/x.tar"], /x\.tar: /);
    await refused(["-d", "nothing", "--out", "x.tar"], /nothing: is not a data directory/);
    await refused(["-d", data, "--store", "sqlite", "--out", "x.tar"], /contains a store of kind files/);
    await refused(["--store", "postgres", "--out", "x.tar"], /pg_dump.*docs\/guides\/backups\.md/);
    await refused(["--server", "http://localhost:1", "--out", "x"], /on the server's machine/);
    await refused(["-d", data], /--out/);
    expect(readdirSync(cwd).sort()).toEqual(["data", "kept"]);

    const empty = await backup("-d", data, "--out", "x.tar", "--json");
    expect(JSON.parse(empty.out)).toMatchObject({ file: join(cwd, "x.tar"), store: "files", records: 0 });
  });
});
