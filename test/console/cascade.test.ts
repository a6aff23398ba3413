/** What other runs built on a run: on its page, in a containment, and on the command line, against one server. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { speak } from "../support/io.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { loggedIn } from "./support/client.ts";
import { type ConsoleServer, consoleServer } from "./support/server.ts";

const MANIFESTS = `
- {tool: doc.get, effect: read, permission: p, risk: {source: docs}}
- tool: doc.put
  effect: compensable
  permission: p
  before: {tool: doc.get, args: {id: $args.id}}
  compensation: {tool: doc.put, args: {id: $args.id, text: $before.text}, kind: inverse}
`;
const POLICY = `version: 1
flows: [{id: f, after: {source: none}, then: {sink: none}, carries: true, within: 24h}]
`;
const EVE = "eve@evil.example";

/** A run that wrote something wrong, and another that read it and wrote on. */
async function mistaken() {
  const keys = ["ann", "ben"].map((name) => ({ name, role: "agent", max_permissions: ["p"] }));
  const server = await consoleServer({ manifests: MANIFESTS, policy: POLICY, keys });
  onTestFinished(() => server.close());
  const docs = new Map<string, string>();
  server.app.jobTools = {
    compensator: async ({ args }) => {
      const { id, text } = args as { id: string; text: string };
      docs.set(id, text);
    },
    reader: async ({ arguments: args }) => ({ text: docs.get((args as { id: string }).id) ?? "" }),
  };
  const call = async (key: string, run: string, step: number, tool: string, args: Record<string, string>) => {
    const asked = await server.api(key, "POST", `/v1/runs/${run}/intents`, { tool, args, reason: "r" });
    expect(asked.body.step).toBe(step);
    const before = { text: docs.get(args["id"]!) ?? "" };
    if (tool === "doc.put") docs.set(args["id"]!, args["text"]!);
    const states = tool === "doc.put" ? { before, after: { text: args["text"] } } : {};
    const outcome = { status: "succeeded", result: before, ...states };
    const told = await server.api(key, "POST", `/v1/runs/${run}/steps/${step}/outcome`, outcome);
    expect(told.status).toBe(200);
  };
  for (const [key, run_id] of [
    ["ann", "bad"],
    ["ben", "late"],
  ] as const)
    await server.api(key, "POST", "/v1/runs", { run_id, permissions: ["p"] });
  await call("ann", "bad", 0, "doc.put", { id: "x", text: EVE });
  await call("ben", "late", 0, "doc.get", { id: "x" });
  await call("ben", "late", 1, "doc.put", { id: "y", text: `write to ${EVE}` });
  return { server, docs };
}

const job = async (server: ConsoleServer) =>
  (await server.api("auditor", "GET", "/v1/runs/bad/rollback")).body.job;
const plain = (text: string) => text.replace(/<[^>]+>/g, "").replace(/\s+/g, " ");

it("lists the calls with their evidence, and undoes those that a person chooses", async () => {
  verifies("beyond.cascade.console");
  const { server, docs } = await mistaken();
  const client = await loggedIn(server.url, "operator");
  expect((await client.get("/console/runs/bad")).text).toContain('href="/console/runs/bad/dependents"');
  const page = (await client.get("/console/runs/bad/dependents")).text;
  expect(plain(page)).toContain("$args.text holds an email address from step 0 of late");
  expect(plain(page)).toContain("acts on a resource that step 0 of bad changed");
  expect(page).toContain('name="with" value="late/1"');
  expect(page).not.toContain('value="late/0"');
  expect(page).not.toContain(EVE);
  const watching = await loggedIn(server.url, "auditor");
  expect((await watching.get("/console/runs/bad/dependents")).text).not.toContain('name="with"');
  const csrf = await client.csrf("/console/runs/bad/dependents");
  const wrong = await client.submit("/console/runs/bad/rollback", { csrf, confirm: "yes", with: "late" });
  expect(wrong.text).toContain("must be a step, such as run-7/3");
  await client.submit("/console/runs/bad/rollback", { csrf, confirm: "yes", with: ["late/1"] });
  await until(async () => (await job(server)).state === "done", "the job to end");
  expect([...docs]).toEqual([
    ["x", ""],
    ["y", ""],
  ]);
  expect(plain((await client.get("/console/runs/bad")).text)).toMatch(/undone step 0lateundone step 1/);
});

it("are listed by the plan of the command line, which prints the command that undoes them", async () => {
  verifies("beyond.cascade.cli");
  const { server, docs } = await mistaken();
  const folder = tempDir("cascade");
  writeFileSync(join(folder, "operator.key"), "operator\n", { mode: 0o600 });
  const svc = (...args: string[]) =>
    speak([...args, "--server", server.url, "--key-file", join(folder, "operator.key")], { cwd: folder });
  const plan = await svc("plan", "bad", "--with-dependents");
  expect(plan.out).toContain("2 calls of other runs built on it:\n");
  expect(plan.out).toMatch(/ {2}late\/1 +doc.put +compensate +\$args.text holds address from late\/0\n/);
  expect(plan.out).toMatch(/ {2}late\/0 +doc.get +skip +same resource as bad\/0\n/);
  expect(plan.out).toContain("to undo them too: svc rollback bad --with late/1\n");
  expect((await svc("plan", "bad")).out).not.toContain("late");
  expect((await svc("rollback", "bad", "--with", "late")).err).toContain(
    "--with: late is not a step, such as run-7/3",
  );
  const done = await svc("rollback", "bad", "--with", "late/1");
  expect(done).toMatchObject({ code: 0 });
  expect(done.out).toContain("run bad: rollback with steps of 1 other run complete\n  compensated: 0\n");
  expect(done.out).toContain("run late: rollback complete\n  compensated: 1\n");
  expect([...docs.values()]).toEqual(["", ""]);
  expect((await svc("plan", "late", "--with-dependents")).out).toContain(
    "no call of another run was built on it\n",
  );
});

it("are listed by the preview and the report of a containment", async () => {
  verifies("beyond.cascade.contain");
  const { server } = await mistaken();
  const client = await loggedIn(server.url, "admin");
  const preview = await client.get("/console/contain?actor=ann&reason=x");
  expect(plain(preview.text)).toContain("What other runs built on this");
  expect(preview.text).toContain('href="/console/runs/bad/dependents"');
  const asked = { actor: "ann", reason: "wrong address" };
  const dry = (await server.api("admin", "POST", "/v1/contain", { ...asked, dry_run: true })).body;
  expect(dry.dependents).toMatchObject([
    { run_id: "late", step: 1, because: [{ run_id: "late", step: 0, kind: "address" }] },
    { run_id: "late", step: 0, because: [{ run_id: "bad", step: 0, kind: "resource" }] },
  ]);
  const { id } = (await server.api("admin", "POST", "/v1/contain", { ...asked, confirm: true })).body.job;
  const read = async () => (await server.api("auditor", "GET", `/v1/contain/${id}`)).body.job;
  await until(async () => (await read()).state === "done", "the containment to end");
  expect((await read()).report.dependents).toEqual(dry.dependents);
});
