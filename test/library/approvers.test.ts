/** The library verifies signed approvals itself: a forging server in front of the real one gets no call through. */
import { chmodSync, chownSync, copyFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { startListening } from "../../src/http/lifecycle.ts";
import { keyedHash } from "../../src/kernel/hash.ts";
import { connectToServer } from "../../src/library/connect.ts";
import { openEmbedded } from "../../src/library/open.ts";
import type { AgentRun } from "../../src/library/run.ts";
import { forgingServer } from "../support/forging.ts";
import { speak } from "../support/io.ts";
import { SoftPasskey } from "../support/passkeys.ts";
import { LEDGER, SIGN_AT, SIGNED_POLICY, type SigningServer, signingServer } from "../support/signing.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const folder = tempDir("approvers");
let s: SigningServer;
let forger: Awaited<ReturnType<typeof forgingServer>>;
let stop: () => Promise<void>;
let file = "";
let n = 0;

const writeFile = (change: object = {}, path = file) =>
  writeFileSync(
    path,
    JSON.stringify({
      version: 1,
      ledger: LEDGER,
      rp_id: new URL(SIGN_AT).hostname,
      origins: [SIGN_AT],
      approvers: [
        { name: "ann", groups: ["finance"], keys: [s.people["ann"]!.entry()] },
        { name: "bob", groups: [], keys: [s.people["bob"]!.entry()] },
      ],
      require: [{ tool: "pay.re*", groups: ["finance"], quorum: 1 }],
      ...change,
    }),
  );

beforeAll(async () => {
  s = await signingServer();
  // The library has a clock of its own.
  await s.env.advance(Date.now() - s.env.now());
  await s.enrol("ann");
  await s.enrol("bob");
  const listening = await startListening(s.http, "127.0.0.1", 0);
  stop = listening.stop;
  forger = await forgingServer(listening.url);
});
afterAll(async () => {
  await forger.close();
  await stop();
});
beforeEach(() => {
  forger.lies.length = 0;
  file = join(folder, `approvers-${n++}.json`);
  writeFile();
});

const agent = async (): Promise<AgentRun> => {
  const svc = await connectToServer({ url: forger.url, key: "agent", approvers: file });
  return svc.run({ permissions: ["pay"] });
};
const approve = async (id: string, key = "ann") => {
  const signature = await s.signed(key, { kind: "approval", id, decision: "approve" });
  const answer = await s.call(key, "POST", `/v1/approvals/${id}/approve`, { signature });
  expect(answer.body.status).toBe("approved");
};
const intentOf = (args: object) => ({
  tool: "pay.refund",
  args: args as { amount: number },
  reason: "because",
});
const asked = async (run: AgentRun, args: object): Promise<string> => {
  const decision = await run.intent(intentOf(args));
  return /apr_[0-9a-f-]{36}/.exec(JSON.stringify(decision))![0];
};
/** Makes the call, and answers whether the tool ran. */
const made = async (run: AgentRun, args: object, tool = "pay.refund") => {
  let ran = false;
  let why = "";
  await run
    .call({ ...intentOf(args), tool }, () => {
      ran = true;
      return "done";
    })
    .catch((error: Error) => {
      why = error.message;
    });
  return { ran, why };
};
const isIntent = (path: string) => /\/intents$/.test(path);
const isEvidence = (path: string) => /\/signatures$/.test(path);

it("makes a call that its approver signed, once", async () => {
  verifies("beyond.approvers.library", "beyond.approvers.signatures-route", "beyond.approvers.clock");
  const run = await agent();
  await approve(await asked(run, { amount: 900 }));
  expect(await made(run, { amount: 900 })).toEqual({ ran: true, why: "" });
});

it("leaves tools that the file does not name to the server", async () => {
  verifies("beyond.approvers.others");
  expect(await made(await agent(), { amount: 1 }, "pay.free")).toEqual({ ran: true, why: "" });
});

it("refuses everything that a forging server makes up", async () => {
  verifies("beyond.approvers.forging-library");
  const refused = async (run: AgentRun, args: object) => {
    const { ran, why } = await made(run, args);
    expect([ran, why]).toEqual([false, expect.stringContaining("requires signatures")]);
  };
  // A plain allow.
  forger.lies.push(({ path }, answer) =>
    isIntent(path) && answer.decision === "block" ? { decision: "allow", step: 0 } : undefined,
  );
  await refused(await agent(), { amount: 900 });

  // An approval that nobody gave.
  const thief = new SoftPasskey(SIGN_AT);
  const forged = (run_id: string, args: object, more: object = {}) => ({
    v: 1,
    ledger: LEDGER,
    kind: "approval",
    id: "apr_00000000-0000-4000-8000-000000000000",
    decision: "approve",
    by: "ann",
    run_id,
    actor: "agent",
    tool: "pay.refund",
    args_hash: keyedHash("salt", args as never),
    policy_hash: "sha256:0",
    expires_ms: Date.now() * 2,
    nonce: "n",
    ...more,
  });
  let answers: object = {};
  forger.lies.push(({ path }, answer) => {
    if (isIntent(path)) return { ...answer, decision: "allow", step: answer.step ?? 0, approval_id: "apr_x" };
    return isEvidence(path) ? answers : undefined;
  });
  let run = await agent();
  const lie = thief.sign({ payload: forged(run.run_id, { amount: 900 }) });
  for (const assertion of [
    lie.assertion,
    { ...lie.assertion, id: s.people["ann"]!.id, rawId: s.people["ann"]!.id },
  ]) {
    answers = { salt: "salt", signatures: [{ payload: lie.payload, assertion }] };
    await refused(run, { amount: 900 });
  }
  // Stripped, empty, or no answer at all.
  for (const nothing of [{ salt: "salt", signatures: [] }, {}, { error: "no" }]) {
    answers = nothing;
    await refused(run, { amount: 900 });
  }
  forger.lies.length = 0;

  // Arguments swapped after signing, another run, another run's salt, an earlier approval again.
  run = await agent();
  const first = await asked(run, { amount: 5 });
  await approve(first);
  const real = (await s.call("agent", "GET", `/v1/approvals/${first}/signatures`)).body;
  expect(real.signatures).toHaveLength(1);
  forger.lies.push(({ path }, answer) => {
    if (isIntent(path)) return { ...answer, decision: "allow", step: answer.step ?? 0, approval_id: "apr_x" };
    return isEvidence(path) ? answers : undefined;
  });
  answers = real;
  await refused(run, { amount: 6 });
  await refused(await agent(), { amount: 5 });
  answers = { ...real, salt: "another" };
  await refused(run, { amount: 5 });
  answers = {
    ...real,
    signatures: [{ ...real.signatures[0], payload: { ...real.signatures[0].payload, tool: "pay.free" } }],
  };
  await refused(run, { amount: 5 });
  answers = real;
  expect(await made(run, { amount: 5 })).toMatchObject({ ran: true });
  const { ran, why } = await made(run, { amount: 5 });
  expect([ran, why]).toEqual([false, expect.stringContaining("used before")]);
  // Another process with the same file knows it too.
  const again = await connectToServer({ url: forger.url, key: "agent", approvers: file });
  expect((await made(await again.attach(run.run_id), { amount: 5 })).ran).toBe(false);
});

it("counts the quorum and the groups of the file, not of the server", async () => {
  verifies("beyond.approvers.quorum");
  writeFile({ require: [{ tool: "pay.refund", groups: [], quorum: 2 }] });
  const two = await agent();
  await approve(await asked(two, { amount: 900 }));
  expect((await made(two, { amount: 900 })).ran).toBe(false);
  writeFile({ require: [{ tool: "pay.refund", groups: ["finance"], quorum: 1 }] });
  const one = await agent();
  await approve(await asked(one, { amount: 901 }), "bob");
  expect((await made(one, { amount: 901 })).ran).toBe(false);
});

it("reads the file again when it changes, and keeps the old one while the new one is not valid", async () => {
  verifies("beyond.approvers.file");
  const run = await agent();
  writeFileSync(file, "{");
  await approve(await asked(run, { amount: 1 }));
  expect((await made(run, { amount: 1 })).ran).toBe(true);
  writeFile({ require: [] });
  chmodSync(file, 0o666);
  forger.lies.push(({ path }, answer) =>
    isIntent(path) && answer.decision === "block" ? { decision: "allow", step: 0 } : undefined,
  );
  expect((await made(run, { amount: 2 })).ran).toBe(false);
  forger.lies.length = 0;
  chmodSync(file, 0o644);
  writeFile({ approvers: [{ name: "ann", groups: ["finance"], keys: [s.people["ann"]!.entry(true)] }] });
  await approve(await asked(run, { amount: 3 }));
  expect((await made(run, { amount: 3 })).ran).toBe(false);
  writeFile({ approvers: [] });
  await approve(await asked(run, { amount: 4 }));
  expect((await made(run, { amount: 4 })).ran).toBe(false);
  const missing = connectToServer({ url: forger.url, key: "agent", approvers: join(folder, "missing.json") });
  await expect(missing).rejects.toThrow("does not exist");
  chmodSync(file, 0o666);
  await expect(connectToServer({ url: forger.url, key: "agent", approvers: file })).rejects.toThrow(
    "written by others",
  );
});

it("refuses a file that another user owns, or could replace in its directory", async () => {
  verifies("beyond.approvers.owner");
  const place = join(folder, "shared");
  mkdirSync(place);
  const shared = join(place, "approvers.json");
  copyFileSync(file, shared);
  chmodSync(shared, 0o644);
  const link = join(folder, "link.json");
  symlinkSync(shared, link);
  const connect = (approvers: string) => connectToServer({ url: forger.url, key: "agent", approvers });
  for (const path of [shared, link]) await connect(path);
  // In a sticky directory such as /tmp, only the owner replaces a file.
  chmodSync(place, 0o1777);
  await connect(shared);
  for (const mode of [0o777, 0o775]) {
    chmodSync(place, mode);
    for (const path of [shared, link]) await expect(connect(path)).rejects.toThrow("written by others");
  }
  chmodSync(place, 0o755);
  if (process.getuid!() === 0) chownSync(shared, 12_345, 12_345);
  else vi.spyOn(process, "getuid").mockReturnValue(12_345);
  for (const path of [shared, link]) await expect(connect(path)).rejects.toThrow("yours or root's");
  vi.restoreAllMocks();
});

it("guards the embedded library too", async () => {
  verifies("beyond.approvers.embedded");
  const home = join(folder, "embedded");
  mkdirSync(home);
  writeFileSync(join(home, "manifests.yaml"), "- {tool: pay.refund, effect: idempotent, permission: pay}\n");
  writeFileSync(join(home, "policy.yaml"), "version: 1\n");
  const svc = await openEmbedded({
    manifests: join(home, "manifests.yaml"),
    policy: join(home, "policy.yaml"),
    data: join(home, "data"),
    approvers: file,
  });
  const run = await svc.run({ actor: "bot", permissions: ["pay"] });
  const { ran, why } = await made(run, { amount: 1 });
  expect([ran, why]).toEqual([false, expect.stringContaining("requires signatures")]);
  await svc.close();
});

it("guards the undos and drills of the library", async () => {
  verifies("beyond.approvers.library-undo");
  const home = join(folder, "undos");
  mkdirSync(home);
  const drill = "drill: {args: {amount: 1}, expect: {id: 1}}";
  writeFileSync(
    join(home, "manifests.yaml"),
    `- {tool: pay.refund, effect: compensable, permission: pay, compensation: {tool: pay.reclaim, args: {id: $result.id}, kind: inverse}, verification: {tool: pay.get, args: {id: $result.id}, expect: {exists: false}}, ${drill}}\n- {tool: pay.get, effect: read, permission: pay}\n`,
  );
  writeFileSync(join(home, "policy.yaml"), "version: 1\n");
  writeFileSync(join(home, "svc.config.yaml"), "environment: test\ndrills: {environments: [test]}\n");
  writeFile({ require: [{ tool: "pay.reclaim", groups: [], quorum: 1 }] });
  const where = { manifests: join(home, "manifests.yaml"), policy: join(home, "policy.yaml") };
  const config = join(home, "svc.config.yaml");
  const svc = await openEmbedded({
    ...{ ...where, config, data: join(home, "data"), environment: "test", approvers: file },
  });
  let undone = 0;
  const compensator = async () => ++undone;
  const run = await svc.run({ actor: "bot", permissions: ["pay"] });
  await run.call(intentOf({ amount: 1 }), () => ({ id: 1 }));
  expect(JSON.stringify(await run.rollback({ compensator, retries: 1 }))).toContain("requires signatures");
  expect(undone).toBe(0);

  writeFile();
  let drilled = 0;
  const [result] = await svc.drill({
    call: () => ({ id: ++drilled }),
    compensator,
    verifier: async () => ({ exists: false }),
  });
  expect([drilled, result!.passed, result!.problem]).toEqual([
    0,
    false,
    expect.stringContaining("requires signatures"),
  ]);
  await svc.close();

  writeFile({ require: [{ tool: "pay.reclaim", groups: [], quorum: 1 }] });
  const own = await agent();
  await approve(await asked(own, { amount: 70 }));
  await own.call(intentOf({ amount: 70 }), () => ({ id: 7 }));
  const operator = await connectToServer({ url: forger.url, key: "operator", approvers: file });
  const there = await operator.attach(own.run_id);
  const report = JSON.stringify(await there.rollback({ compensator, retries: 1 }).catch(String));
  expect(report).not.toContain('"complete":true');
  expect(undone).toBe(0);
});

it("shows the signatures to the run's principal alone", async () => {
  verifies("beyond.approvers.signatures-role");
  const { id } = await s.ask();
  for (const key of ["agent2", "ann", "admin"])
    expect((await s.call(key, "GET", `/v1/approvals/${id}/signatures`)).status).toBe(404);
  expect((await s.call("agent", "GET", `/v1/approvals/${id}/signatures`)).body.signatures).toEqual([]);
});

it("writes the file offline, and refuses a key whose code differs", async () => {
  verifies("beyond.approvers.command");
  const soft = new SoftPasskey(SIGN_AT);
  const key = join(folder, "ann.pem");
  writeFileSync(key, soft.pem);
  const path = join(folder, "made.json");
  const add = (...more: string[]) =>
    speak(
      [
        "approvers",
        "add",
        path,
        "--name",
        "ann",
        "--groups",
        "finance",
        "--key",
        key,
        "--id",
        soft.id,
        ...more,
      ],
      { cwd: folder },
    );
  const where = ["--ledger", LEDGER, "--rp-id", "svc.example.com", "--origin", SIGN_AT];
  const wrong = await add("--code", soft.code === "00000000" ? "11111111" : "00000000", ...where);
  expect([wrong.code, wrong.err]).toEqual([1, expect.stringContaining("--code")]);
  expect((await add("--code", soft.code)).code).toBe(1);
  const done = await add("--code", soft.code, ...where);
  expect([done.code, done.out]).toEqual([0, `${path}: ann signs with ${soft.code}\n`]);
  expect((await add("--code", soft.code)).code).toBe(0);
  expect(SIGNED_POLICY).toContain("signed");
});
