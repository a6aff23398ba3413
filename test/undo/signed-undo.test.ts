/** Undos with tools that an approvers file names: by the library on a server, and by a compensator command. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startListening } from "../../src/http/lifecycle.ts";
import { connectToServer } from "../../src/library/connect.ts";
import type { CompensatorFn } from "../../src/rollback/ports.ts";
import { openStore } from "../../src/store/open.ts";
import { forgingServer } from "../support/forging.ts";
import { speak } from "../support/io.ts";
import { LEDGER, SIGN_AT, type SigningServer, signingServer } from "../support/signing.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: pay.refund, effect: compensable, permission: pay, compensation: {tool: pay.reclaim, args: {id: $result.id}, requires_approval: true}}
`;
const POLICY = "version: 1\napprovals: {signed: true}\n";

let s: SigningServer;
let forger: Awaited<ReturnType<typeof forgingServer>>;
let stop: () => Promise<void>;
let file = "";
let n = 0;

function approversFile({ people }: SigningServer): string {
  const path = join(tempDir("signed-undo"), "approvers.json");
  const approvers = [{ name: "ann", groups: [], keys: [people["ann"]!.entry()] }];
  const where = { version: 1, ledger: LEDGER, rp_id: new URL(SIGN_AT).hostname, origins: [SIGN_AT] };
  const require = [{ tool: "pay.reclaim", groups: [], quorum: 1 }];
  writeFileSync(path, JSON.stringify({ ...where, approvers, require }));
  return path;
}

beforeAll(async () => {
  s = await signingServer({ manifests: MANIFESTS, policy: POLICY });
  // The library has its own clock.
  await s.env.advance(Date.now() - s.env.now());
  await s.enrol("ann");
  file = approversFile(s);
  const listening = await startListening(s.http, "127.0.0.1", 0);
  stop = listening.stop;
  forger = await forgingServer(listening.url);
});
afterAll(async () => {
  await forger.close();
  await stop();
});

/** A run with one call that took effect. */
async function refunded(at: SigningServer = s): Promise<string> {
  const run_id = `undo-${n++}`;
  await at.call("agent", "POST", "/v1/runs", { run_id, permissions: ["pay"] });
  const call = { tool: "pay.refund", args: { amount: n }, reason: "because" };
  const { body } = await at.call("agent", "POST", `/v1/runs/${run_id}/intents`, call);
  const outcome = { status: "succeeded", result: { id: n } };
  await at.call("agent", "POST", `/v1/runs/${run_id}/steps/${body.step}/outcome`, outcome);
  return run_id;
}

/** Ann signs the undo that the run waits for. */
async function signUndo(run_id: string, at: SigningServer = s): Promise<string> {
  const { approvals } = (await at.call("ann", "GET", "/v1/approvals")).body;
  const { id } = approvals.find((one: { run_id: string }) => one.run_id === run_id);
  const signature = await at.signed("ann", { kind: "compensation", id, decision: "approve" });
  const { body } = await at.call("ann", "POST", `/v1/approvals/${id}/approve`, { signature });
  expect(body.status).toBe("approved");
  return id;
}

async function rollBack(run_id: string, compensator: CompensatorFn) {
  const svc = await connectToServer({ url: forger.url, key: "operator", approvers: file });
  try {
    return await (await svc.attach(run_id)).rollback({ compensator, retries: 1 });
  } finally {
    await svc.close();
  }
}
const never: CompensatorFn = () => Promise.reject(new Error("it was called"));

it("undoes signed steps on a server, and shows the signatures to the worker alone", async () => {
  verifies("beyond.approvers.library-worker", "beyond.approvers.signatures-role");
  const run_id = await refunded();
  expect(await rollBack(run_id, never)).toMatchObject({ complete: false, awaiting_approval: [0] });
  const id = await signUndo(run_id);
  const read = async (key: string) => (await s.call(key, "GET", `/v1/approvals/${id}/signatures`)).status;
  expect(await read("operator")).toBe(404);
  const during: number[] = [];
  const report = await rollBack(run_id, async ({ tool, args }) => {
    expect([tool, args]).toEqual(["pay.reclaim", { id: n }]);
    for (const key of ["operator", "agent", "admin", "agent2"]) during.push(await read(key));
  });
  expect(report).toMatchObject({ complete: true });
  expect(during).toEqual([200, 200, 404, 404]);
  expect(await read("operator")).toBe(404);
});

it("tries a signed undo again until it took effect, and not after that", async () => {
  verifies("beyond.approvers.undo-again");
  const run_id = await refunded();
  await rollBack(run_id, never);
  await signUndo(run_id);
  const failed = JSON.stringify(await rollBack(run_id, never));
  expect(failed).toContain("it was called");
  // The forging server hears what the real one says, to say it again later.
  const heard = new Map<string, unknown>();
  const isUndo = (path: string) => /\/(plan|compensation|signatures)$/.test(path.split("?")[0]!);
  forger.lies.push(({ path }, answer) => {
    if (isUndo(path)) heard.set(path, answer);
    return undefined;
  });
  let undone = 0;
  const compensator = async () => void undone++;
  expect(await rollBack(run_id, compensator)).toMatchObject({ complete: true });
  forger.lies.push(({ path }) => heard.get(path));
  forger.lies.push(({ path }) =>
    path.endsWith("/outcome") ? { step: 0, status: "compensated" } : undefined,
  );
  await rollBack(run_id, compensator);
  expect([undone, heard.size]).toEqual([1, 3]);
  forger.lies.length = 0;
});

it("refuses an undo with other arguments than the signed ones", async () => {
  verifies("beyond.approvers.library-worker");
  const run_id = await refunded();
  await rollBack(run_id, never);
  await signUndo(run_id);
  let undone = 0;
  forger.lies.push(({ path }, answer) =>
    path.endsWith("/compensation") && answer.tool ? { ...answer, args: { id: 99 } } : undefined,
  );
  const report = JSON.stringify(await rollBack(run_id, async () => void undone++));
  forger.lies.length = 0;
  expect([undone, report]).toEqual([0, expect.stringContaining("other arguments or another tool")]);
});

it("guards the compensator command of a server, and of `svc rollback`", async () => {
  verifies("beyond.approvers.undo-command");
  const folder = tempDir("undo-command");
  const log = join(folder, "undone");
  const script = join(folder, "undo.mjs");
  writeFileSync(
    script,
    `import { appendFileSync, readFileSync } from "node:fs";\nappendFileSync(${JSON.stringify(log)}, JSON.parse(readFileSync(0, "utf8")).step + "\\n");\n`,
  );
  writeFileSync(log, "");
  const data = join(folder, "data");
  const approvers = join(folder, "approvers.json");
  const store = await openStore({ store: "files", data, database_url: null, warn: () => {} });
  const command = `${process.execPath} ${script}`;
  const settings = `approvers: ${approvers}\nrollback: {compensator_cmd: "${command}"}\n`;
  // The manifest asks for no approval, as a server that was broken into would.
  const manifests = MANIFESTS.replace(", requires_approval: true", "");
  const at = await signingServer({ manifests, policy: POLICY, config: settings, store });
  await at.enrol("ann");
  writeFileSync(approvers, readFileSync(approversFile(at)));
  const run_id = await refunded(at);
  const job = async () => (await at.call("operator", "GET", `/v1/runs/${run_id}/rollback`)).body.job;
  const roll = { confirm: true, retries: 1 };
  expect((await at.call("operator", "POST", `/v1/runs/${run_id}/rollback`, roll)).status).toBe(202);
  await until(async () => (await job()).state === "done", "the job");
  expect(JSON.stringify((await job()).report)).toContain("requires signatures");

  writeFileSync(
    join(at.folder, "svc.config.yaml"),
    `${readFileSync(join(at.folder, "svc.config.yaml"), "utf8")}store: files\ndata: ${data}\n`,
  );
  const offline = await speak(["rollback", run_id, "--retries", "1"], { cwd: at.folder });
  expect([offline.code, offline.out]).toEqual([2, expect.stringContaining("requires signatures")]);
  expect(readFileSync(log, "utf8")).toBe("");

  writeFileSync(join(at.folder, "manifests.yaml"), MANIFESTS);
  await at.app.reload();
  const other = await refunded(at);
  const again = { ...roll };
  await at.call("operator", "POST", `/v1/runs/${other}/rollback`, again);
  const open = async () => (await at.call("ann", "GET", "/v1/approvals")).body.approvals;
  await until(
    async () => (await open()).some((one: { run_id: string }) => one.run_id === other),
    "the request",
  );
  await signUndo(other, at);
  await at.call("operator", "POST", `/v1/runs/${other}/rollback`, again);
  await until(() => readFileSync(log, "utf8") !== "", "the undo");
  expect(readFileSync(log, "utf8")).toBe("0\n");
});
