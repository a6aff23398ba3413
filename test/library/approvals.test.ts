/** Waiting for people, deciding, looking ahead and going on with a run, embedded and against a server. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { BlockedError, connect, open, type RemoteSvc, type Run, type Svc } from "../../src/index.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { type ServerProcess, startSvcServer } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const folder = tempDir("library-approvals");
const key = (name: string, role: string) => ({
  name,
  role,
  key_sha256: sha256Hex(name),
  max_permissions: ["*"],
});
const write = (name: string, text: string) => writeFileSync(join(folder, name), text, { mode: 0o600 });
write(
  "manifests.yaml",
  "- {tool: thing.ask, effect: idempotent, permission: p}\n- {tool: thing.look, effect: read, permission: p}\n",
);
write(
  "policy.yaml",
  "version: 1\nrules: [{id: ask, match: {tool: thing.ask}, action: require_approval, reason: ask first, hint: look instead}]\n",
);
write("keys.json", JSON.stringify([key("bot", "agent"), key("other", "agent"), key("ann", "approver")]));
write("svc.config.yaml", "manifests: manifests.yaml\npolicy: policy.yaml\nkeys: keys.json\n");

/** The same behaviour is wanted of an embedded engine and of a remote one. */
function behaves(svc: () => Svc | RemoteSvc, foreign: () => Promise<string>): void {
  const opened = () => (svc() as Svc).run({ actor: "bot", permissions: ["p"] });
  const ask = (n: number) => ({ tool: "thing.ask", args: { n }, reason: "needed" });
  /** The request that a call waits for, as soon as there is one. */
  const requested = async (run: Run, n: number): Promise<string> => {
    const decision = await run.intent(ask(n));
    return /apr_[\w-]+/.exec(JSON.stringify(decision))![0];
  };

  it("waits for a person, and makes the call once", async () => {
    verifies("beyond.library.wait", "beyond.library.approvals");
    const run = await opened();
    const id = await requested(run, 1);
    expect(await svc().approvals.get(id)).toMatchObject({ id, status: "pending" });
    let made = 0;
    const calling = run.call(ask(1), () => ++made, { wait_for_approval: "5m" });
    const waiting = svc().approvals.wait(id, { for: 300 });
    expect(await svc().approvals.approve(id, { key: "ann", note: "fine" })).toMatchObject({
      status: "approved",
      decided_by: "ann",
      note: "fine",
    });
    expect((await waiting).status).toMatch(/^(approved|consumed)$/);
    expect(await calling).toBe(1);
    expect(made).toBe(1);
    await expect(svc().approvals.approve(id, { key: "ann" })).rejects.toMatchObject({ code: "conflict" });
  });

  it("does not make a call that is denied, or not decided in time", async () => {
    verifies("beyond.library.wait-denied");
    const run = await opened();
    const id = await requested(run, 2);
    const calling = run.call(ask(2), () => expect.unreachable(), { wait_for_approval: "5m" });
    const error = calling.catch((thrown: unknown) => thrown);
    for (const wrong of ["bot", "nobody"])
      await expect(svc().approvals.deny(id, { key: wrong })).rejects.toMatchObject({
        code: wrong === "bot" ? "forbidden" : "unauthenticated",
      });
    await svc().approvals.deny(id, { key: "ann", note: "no" });
    expect(await error).toBeInstanceOf(BlockedError);
    expect(await error).toMatchObject({
      message: "blocked: ask first; denied by ann: no",
      reasons: ["ask first", "denied by ann: no"],
      hints: ["look instead"],
      approval_id: id,
    });
    const late = run.call(ask(3), () => expect.unreachable(), { wait_for_approval: 1 });
    await expect(late).rejects.toMatchObject({ approval_id: expect.stringMatching(/^apr_/) });
    await expect(run.call(ask(3), () => 1, { wait_for_approval: "soon" })).rejects.toThrow(
      "wait_for_approval",
    );
  });

  it("says that a request was withdrawn while the call waited for it", async () => {
    verifies("beyond.library.wait-denied");
    const run = await opened();
    const asking = vi.spyOn(run, "intent");
    const calling = run.call(ask(5), () => expect.unreachable(), { wait_for_approval: "1m" });
    const refused = calling.catch((thrown: unknown) => thrown);
    await vi.waitFor(() => expect(asking).toHaveBeenCalled());
    const id = /apr_[\w-]+/.exec(JSON.stringify(await asking.mock.results[0]!.value))![0];
    await run.withdraw(id);
    const reasons = ["ask first", `approval ${id} is withdrawn: this call is not made`];
    expect(await refused).toMatchObject({ reasons });
  });

  it("previews a call, and leaves nothing behind", async () => {
    verifies("beyond.library.preview");
    const run = await opened();
    expect(await run.preview({ tool: "thing.look", args: {}, reason: "r" })).toMatchObject({
      decision: "allow",
      reasons: [],
    });
    expect(await run.preview(ask(4))).toMatchObject({
      decision: "needs_approval",
      reasons: ["ask first", "approval required: an approver must approve this call"],
      hints: ["look instead"],
    });
    expect(await run.preview({ tool: "thing.none", args: {}, reason: "r" })).toMatchObject({
      decision: "block",
    });
    const first = await run.intent({ tool: "thing.look", args: {}, reason: "r" });
    expect(first).toEqual({ decision: "allow", step: 0 });
    const id = await requested(run, 4);
    expect((await run.preview(ask(4))).reasons.at(-1)).toContain(id);
  });

  it("says that an answer was given before, under the caller's own key", async () => {
    verifies("beyond.library.once");
    const run = await opened();
    const look = { tool: "thing.look", args: {}, reason: "r", idempotency_key: "call-1" };
    expect(await run.preview(look)).toMatchObject({ decision: "allow" });
    expect(await run.intent(look)).toEqual({ decision: "allow", step: 0 });
    expect(await run.intent(look)).toEqual({ decision: "allow", step: 0, replayed: true });
    expect(await run.status(0)).toBe("intended");
    await expect(run.status(1)).rejects.toMatchObject({ code: "not_found" });
    await expect(run.intent({ ...look, args: { other: 1 } })).rejects.toMatchObject({ code: "conflict" });
  });

  it("continues its own run, and nobody else's", async () => {
    verifies("beyond.library.attach");
    const run = await opened();
    await run.call({ tool: "thing.look", args: {}, reason: "r" }, () => 1);
    const again = await svc().attach(run.run_id);
    expect(again.scope_seal).toBe(run.scope_seal);
    expect(await again.intent({ tool: "thing.look", args: {}, reason: "r" })).toMatchObject({ step: 1 });
    await expect(svc().attach("never-opened")).rejects.toMatchObject({ code: "not_found" });
    await expect(svc().attach(await foreign())).rejects.toMatchObject({
      code: expect.stringMatching(/not_found|forbidden/),
    });
  });
}

let server: ServerProcess;
let remote: RemoteSvc;
let local: Svc;
beforeAll(async () => {
  server = await startSvcServer([], { cwd: folder });
  remote = await connect({ url: server.url, key: "bot" });
  local = await open({ config: join(folder, "svc.config.yaml"), data: join(folder, "data") });
});
afterAll(async () => {
  await remote?.close();
  await local?.close();
  await server?.stop();
});
/** A run that somebody else opened with a key. */
async function foreign(): Promise<string> {
  const other = await connect({ url: server.url, key: "other" });
  const { run_id } = await other.run({ permissions: ["p"] });
  await other.close();
  return run_id;
}

describe("embedded", () => behaves(() => local, foreign));
describe("remote", () => behaves(() => remote, foreign));

describe("remote, deciding with the connection's own key", () => {
  it("decides, and an agent's key may not", async () => {
    verifies("beyond.library.approvals");
    const run = await remote.run({ permissions: ["p"] });
    const decision = await run.intent({ tool: "thing.ask", args: { n: 9 }, reason: "r" });
    const id = /apr_[\w-]+/.exec(JSON.stringify(decision))![0];
    await expect(remote.approvals.approve(id)).rejects.toMatchObject({ code: "forbidden" });
    const ann = await connect({ url: server.url, key: "ann" });
    expect(await ann.approvals.approve(id)).toMatchObject({ status: "approved", decided_by: "ann" });
    await ann.close();
    await expect(local.approvals.approve(id)).rejects.toMatchObject({ code: "invalid" });
  });
});
