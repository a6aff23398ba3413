/** A run rolled back with all runs below it: every call of the tree, newest first, on every surface. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { connect, open } from "../../src/index.ts";
import { loggedIn } from "../console/support/client.ts";
import { type ConsoleServer, consoleServer } from "../console/support/server.ts";
import { svc } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { docs, MANIFESTS } from "./support.ts";

const shelf = docs();
let s: ConsoleServer;
let n = 0;
beforeAll(async () => {
  s = await consoleServer({
    manifests: MANIFESTS,
    config: `console: login\nrollback: {compensator_cmd: "${shelf.compensator}", reader_cmd: "${shelf.reader}"}\n`,
    keys: [{ name: "self", role: "agent", self_rollback: true, max_permissions: ["p"] }],
  });
  return () => s.close();
});

const ok = async (key: string, method: string, path: string, body?: unknown) => {
  const answer = await s.api(key, method, path, body);
  expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300);
  return answer.body;
};
async function put(run: string, id: string, text: string, key = "agent"): Promise<void> {
  const body = { tool: "doc.put", args: { id, text }, reason: "r" };
  const { step } = await ok(key, "POST", `/v1/runs/${run}/intents`, body);
  const before = shelf.show(id);
  shelf.write(id, text);
  const outcome = { status: "succeeded", before, after: shelf.show(id) };
  await ok(key, "POST", `/v1/runs/${run}/steps/${step}/outcome`, outcome);
}

interface Tree {
  parent: string;
  child: string;
  deep: string;
  doc: string;
}

/** Three runs that wrote one document in turn: parent, child, grandchild, parent, child. It was `old`. */
async function tree(key = "agent"): Promise<Tree> {
  const doc = `doc-${n}`;
  const [parent, child, deep] = [`parent-${n}`, `child-${n}`, `deep-${n++}`] as const;
  shelf.write(doc, "old");
  await ok(key, "POST", "/v1/runs", { run_id: parent, permissions: ["p"] });
  await ok(key, "POST", "/v1/runs", { run_id: child, parent, permissions: ["p"] });
  await ok(key, "POST", "/v1/runs", { run_id: deep, parent: child, permissions: ["p"] });
  for (const [at, run] of [parent, child, deep, parent, child].entries())
    await put(run, doc, `text ${at}`, key);
  return { parent, child, deep, doc };
}
const jobOf = async (run: string, key = "operator") => (await ok(key, "GET", `/v1/runs/${run}/rollback`)).job;
async function rollBack(run: string, body: object, key = "operator") {
  await ok(key, "POST", `/v1/runs/${run}/rollback`, { confirm: true, ...body });
  await until(async () => (await jobOf(run, key)).state !== "running", "the job");
  return (await jobOf(run, key)).report;
}

describe("a rollback with the runs below", () => {
  it("restores the state before the first call of the tree", async () => {
    verifies("beyond.tree.rollback", "beyond.tree.rollback-order");
    const { parent, child, deep, doc } = await tree();
    const plan = await ok("operator", "GET", `/v1/runs/${parent}/plan?children=1`);
    expect(plan).toMatchObject({ run_id: parent, fully_reversible: true });
    expect(plan.children.map((one: { run_id: string }) => one.run_id)).toEqual([deep, child]);
    const shown = await ok("operator", "POST", `/v1/runs/${parent}/rollback`, { children: true });
    expect(shown.plan).toEqual(plan);
    const report = await rollBack(parent, { children: true });
    expect(report).toMatchObject({ complete: true, compensated: [1, 0] });
    expect(report.children).toMatchObject([
      { run_id: deep, compensated: [0], complete: true },
      { run_id: child, compensated: [1, 0], complete: true },
    ]);
    expect(shelf.text(doc)).toBe("old");
  });

  it("covers only the part below the run, and nothing below without the word", async () => {
    verifies("beyond.tree.rollback-part");
    const { parent, child, deep, doc } = await tree();
    const alone = await rollBack(parent, {});
    expect(alone).not.toHaveProperty("children");
    expect(alone.failed).toMatchObject([
      { step: 1, conflict: true },
      { step: 0, conflict: true },
    ]);
    expect(shelf.text(doc)).toBe("text 4");
    const below = await rollBack(child, { children: true });
    expect(below.children.map((one: { run_id: string }) => one.run_id)).toEqual([deep]);
    expect(below.compensated).toEqual([1]);
    expect(below.complete).toBe(false);
    expect(shelf.text(doc)).toBe("text 3");
    expect(await rollBack(parent, { children: true })).toMatchObject({ complete: true });
    expect(shelf.text(doc)).toBe("old");
  });

  it("leaves alone what somebody else wrote, and is not complete", async () => {
    verifies("beyond.tree.rollback-conflict");
    const { parent, child, doc } = await tree();
    shelf.write(doc, "a person's");
    const report = await rollBack(parent, { children: true });
    expect(report.complete).toBe(false);
    expect(report.children[1]).toMatchObject({
      run_id: child,
      failed: [{ step: 1, conflict: true }, { step: 0 }],
    });
    expect(shelf.text(doc)).toBe("a person's");
    const both = {
      confirm: true,
      children: true,
      overwrite: 1,
      reason: "r",
      current_hash: `sha256:${"0".repeat(64)}`,
    };
    const refused = await s.api("operator", "POST", `/v1/runs/${parent}/rollback`, both);
    expect([refused.status, refused.body.error]).toEqual([
      400,
      "overwrite: names a step of this run alone; omit children",
    ]);
  });

  it("is an operator's, or the run's own agent's whose key may", async () => {
    verifies("beyond.tree.rollback-roles");
    const { parent } = await tree();
    for (const key of ["agent", "auditor"]) {
      const answer = await s.api(key, "POST", `/v1/runs/${parent}/rollback`, {
        confirm: true,
        children: true,
      });
      expect(answer.status).toBe(403);
    }
    const own = await tree("self");
    expect(await rollBack(own.parent, { children: true }, "self")).toMatchObject({ children: [{}, {}] });
    expect(shelf.text(own.doc)).toBe("old");
  });
});

const undo = async ({ tool, args }: { tool: string; args: unknown }) => {
  const { id, text } = args as { id: string; text: string };
  shelf.write(id, tool === "doc.drop" ? undefined : text);
};
const look = async ({ arguments: args }: { arguments: unknown }) => shelf.show((args as { id: string }).id);

describe("the same rollback", () => {
  it("starts from the console, whose page links the runs of the tree", async () => {
    verifies("beyond.tree.surfaces", "beyond.tree.shown");
    const { parent, child, doc } = await tree();
    const operator = await loggedIn(s.url, "operator");
    const page = await operator.get(`/console/runs/${parent}`);
    expect(page.text).toContain(`href="/console/runs/${child}"`);
    expect(page.text).toContain("Undo the 1 child run and all runs below too");
    expect((await operator.get(`/console/runs/${child}`)).text).toContain(`href="/console/runs/${parent}"`);
    const form = { confirm: "yes", children: "yes" };
    expect((await operator.submit(`/console/runs/${parent}/rollback`, form)).status).toBe(303);
    await until(async () => (await jobOf(parent)).state !== "running", "the job");
    expect(shelf.text(doc)).toBe("old");
  });

  it("runs from the command line, on a server and on local data", async () => {
    verifies("beyond.tree.surfaces");
    const remote = await tree();
    const key = join(tempDir("key"), "operator.key");
    writeFileSync(key, "operator", { mode: 0o600 });
    const to = ["--server", s.url, "--key-file", key];
    const { code, out, err } = await svc(["rollback", remote.parent, "--children", ...to]);
    expect(err).toBe("");
    expect([code, out]).toEqual([0, expect.stringContaining("rollback with 2 runs below complete")]);
    expect(out).toContain(`run ${remote.deep}: rollback complete`);
    expect(shelf.text(remote.doc)).toBe("old");
    const shown = await svc(["show", remote.parent, ...to]);
    expect(shown.out).toContain(`child runs: ${remote.child}`);

    const data = tempDir("tree");
    const manifests = join(data, "m.yaml");
    writeFileSync(manifests, MANIFESTS);
    const service = await open({ manifests, data: join(data, "d"), store: "files" });
    const parent = await service.run({ actor: "bot", permissions: ["p"], run_id: "up" });
    const child = await service.run({ actor: "bot", permissions: ["p"], run_id: "low", parent: "up" });
    shelf.write("local", "old");
    for (const [run, text] of [
      [parent, "a"],
      [child, "b"],
      [parent, "c"],
    ] as const)
      await run.call(
        { tool: "doc.put", args: { id: "local", text }, reason: "r" },
        () => shelf.write("local", text),
        { read: look },
      );
    await service.close();
    const flags = ["-m", manifests, "-d", join(data, "d"), "--reader-cmd", shelf.reader];
    const plan = await svc(["plan", "up", "--children", ...flags]);
    expect([plan.code, plan.out]).toEqual([0, expect.stringContaining("run low: fully reversible")]);
    const done = await svc([
      "rollback",
      "up",
      "--children",
      "--compensator-cmd",
      shelf.compensator,
      ...flags,
    ]);
    expect([done.code, done.out]).toEqual([0, expect.stringContaining("run low: rollback complete")]);
    expect(shelf.text("local")).toBe("old");
  });

  it("runs in the library, in this process and as a remote worker", async () => {
    verifies("beyond.tree.surfaces");
    const remote = await tree();
    const client = await connect({ url: s.url, key: "operator" });
    const run = await client.attach(remote.parent);
    const report = await run.rollback({ compensator: undo, verifier: look, children: true });
    expect(report).toMatchObject({ complete: true, children: [{}, {}] });
    expect(shelf.text(remote.doc)).toBe("old");
    await client.close();

    const data = tempDir("tree-library");
    const manifests = join(data, "m.yaml");
    writeFileSync(manifests, MANIFESTS);
    const service = await open({ manifests, data: join(data, "d"), store: "files" });
    const parent = await service.run({ actor: "bot", permissions: ["p"] });
    const child = await service.run({ actor: "bot", permissions: ["p"], parent: parent.run_id });
    shelf.write("own", "old");
    for (const [one, text] of [
      [parent, "a"],
      [child, "b"],
      [parent, "c"],
    ] as const)
      await one.call(
        { tool: "doc.put", args: { id: "own", text }, reason: "r" },
        () => shelf.write("own", text),
        { read: look },
      );
    expect(await parent.rollback({ compensator: undo, verifier: look, children: true })).toMatchObject({
      complete: true,
      children: [{ run_id: child.run_id, compensated: [0] }],
    });
    expect(shelf.text("own")).toBe("old");
    await service.close();
  });
});
