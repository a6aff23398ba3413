/** Requests alike at the command line: listed in one line, and decided together, each by its own card. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { startSvcServer, svc } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: pay.refund, effect: compensable, permission: pay, compensation: {tool: pay.charge, args: {id: $args.id}}}
- {tool: pay.wire, effect: irreversible, permission: pay}
`;
const POLICY = `version: 1
approvals: {flood: {max: 1, window: 10m}}
rules: [{id: ask, match: {tool: "pay.*"}, action: require_approval, reason: ask}]
`;

it("are grouped by actor, tool and rule, and a group is decided at once", async () => {
  verifies("beyond.flood.command", "beyond.flood.group", "beyond.flood.irreversible-alone");
  const folder = tempDir("floods");
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text, { mode: 0o600 });
  write("manifests.yaml", MANIFESTS);
  write("policy.yaml", POLICY);
  const keys = { bot: "agent", other: "agent", ann: "approver" };
  write(
    "keys.json",
    JSON.stringify(
      Object.entries(keys).map(([name, role]) => ({
        name,
        role,
        key_sha256: sha256Hex(name),
        max_permissions: ["*"],
      })),
    ),
  );
  write("svc.config.yaml", "manifests: manifests.yaml\npolicy: policy.yaml\nkeys: keys.json\n");
  write("ann.key", "ann\n");
  const server = await startSvcServer([], { cwd: folder });
  onTestFinished(async () => void (await server.stop()));
  const call = async (key: string, path: string, body?: object) => {
    const response = await fetch(`${server.url}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies freely
    return (await response.json()) as any;
  };
  let n = 0;
  const ask = async (key: string, tool: string): Promise<string> => {
    const run_id = `f${n++}`;
    await call(key, "/v1/runs", { run_id, permissions: ["pay"] });
    const { reasons } = await call(key, `/v1/runs/${run_id}/intents`, { tool, args: { id: n }, reason: "r" });
    return /request (apr_\S+)/.exec(reasons.at(-1))![1]!;
  };
  const refunds = [
    await ask("bot", "pay.refund"),
    await ask("bot", "pay.refund"),
    await ask("bot", "pay.refund"),
  ];
  const wires = [await ask("bot", "pay.wire"), await ask("bot", "pay.wire")];
  const theirs = await ask("other", "pay.refund");
  const there = (...args: string[]) =>
    svc(["approvals", ...args, "--server", server.url, "--key-file", "ann.key"], { cwd: folder });

  const listed = await there("list", "--group", "--json");
  expect(JSON.parse(listed.out).groups).toEqual([
    { actor: "bot", tool: "pay.refund", rule: "ask", waiting: 3, ids: refunds },
    { actor: "bot", tool: "pay.wire", rule: "ask", waiting: 2, ids: wires },
    { actor: "other", tool: "pay.refund", rule: "ask", waiting: 1, ids: [theirs] },
  ]);
  const alone = await there("approve", wires[0]!, "--group");
  expect(alone.code).toBe(1);
  expect(alone.err).toContain("an irreversible call is decided by itself");
  const done = await there("approve", refunds[1]!, "--group", "--note", "the fair");
  expect(done.code, done.err).toBe(0);
  expect(done.out.trim().split("\n")).toEqual([
    ...refunds.map((id) => `${id}: approved`),
    "3 of 3 requests decided",
  ]);
  const { approvals } = await call("ann", "/v1/approvals");
  const decided = approvals.filter(({ status }: { status: string }) => status === "approved");
  expect(decided.map(({ id }: { id: string }) => id).sort()).toEqual([...refunds].sort());
  const { records } = await call("ann", "/v1/search/records?event=approved");
  const cards = new Set<string>(
    records.map(({ detail }: { detail: string }) => /; card (sha256:[0-9a-f]{64})$/.exec(detail)?.[1]),
  );
  expect(records).toHaveLength(3);
  expect(cards.size).toBe(3);
});
