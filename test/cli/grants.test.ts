/** `svc grants`: given at the command line, used through a server, seen again from both; and what it would have covered. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { type ServerProcess, startSvcServer, svc } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS =
  "- {tool: pay.refund, effect: compensable, permission: pay, compensation: {tool: pay.charge, args: {id: $args.id}}}\n";
const POLICY =
  "version: 1\nrules: [{id: refunds, match: {tool: pay.refund}, action: require_approval, reason: a person looks}]\n";
let folder = "";
let server: ServerProcess;
beforeAll(async () => {
  folder = tempDir("grants");
  const key = (name: string, role: string) => ({
    name,
    role,
    key_sha256: sha256Hex(name),
    max_permissions: ["*"],
  });
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text, { mode: 0o600 });
  write("manifests.yaml", MANIFESTS);
  write("policy.yaml", POLICY);
  write("keys.json", JSON.stringify([key("bot", "agent"), key("ann", "approver"), key("aud", "auditor")]));
  write(
    "svc.config.yaml",
    "manifests: manifests.yaml\npolicy: policy.yaml\nkeys: keys.json\ncapture: {enabled: true}\n",
  );
  write("ann.key", "ann\n");
  server = await startSvcServer([], { cwd: folder });
});
afterAll(() => server?.stop());

async function call(key: string, method: string, path: string, body?: unknown) {
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies freely
  return { status: response.status, body: (await response.json()) as any };
}
let n = 0;
async function ask(args: object) {
  const run_id = `c${n++}`;
  await call("bot", "POST", "/v1/runs", { run_id, permissions: ["pay"] });
  return (await call("bot", "POST", `/v1/runs/${run_id}/intents`, { tool: "pay.refund", args, reason: "r" }))
    .body;
}
const here = (...args: string[]) => svc(["grants", ...args], { cwd: folder });
const there = (...args: string[]) =>
  svc(["grants", ...args, "--server", server.url, "--key-file", "ann.key"], { cwd: folder });
const TERMS = ["--tool", "pay.refund", "--actor", "bot", "--rule", "refunds"];

describe("svc grants", () => {
  it("gives, lists and revokes on local data and on a server", async () => {
    verifies("beyond.grant.command");
    const given = await here("add", ...TERMS, "--max-uses", "2", "--expires", "8h", "--reason", "a fair");
    expect(given).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^grt_\S+: pay\.refund by bot, at most 2 until /),
    });
    expect(await ask({ id: 1 })).toMatchObject({ decision: "allow" });
    const [id] = /grt_[\w-]+/.exec(given.out)!;
    expect((await here("list")).out).toMatch(
      new RegExp(`${id} +active +pay.refund +bot +refunds +1 of 2 .* cli +a fair`),
    );
    expect((await here("revoke", id)).out).toBe(`${id}: revoked, 1 of 2 used\n`);
    expect(await ask({ id: 2 })).toMatchObject({ decision: "block" });

    const remote = await there(
      ...["add", ...TERMS, "--when", "$args.currency eq EUR", "--budget", "$args.amount=10"],
      ...["--expires", "1h", "--reason", "remote", "--json"],
    );
    const grant = JSON.parse(remote.out);
    expect(grant).toMatchObject({
      by: "ann",
      max_uses: 1_000,
      when: [{ path: "$args.currency", op: "eq", value: "EUR" }],
      budget: { path: "$args.amount", max: 10 },
    });
    expect(await ask({ id: 1, amount: 4, currency: "EUR" })).toMatchObject({ decision: "allow" });
    const { grants } = JSON.parse((await there("list", "--all", "--json")).out);
    expect(grants.map((one: { uses: number; spent: number }) => [one.uses, one.spent])).toEqual([
      [1, 4],
      [1, 0],
    ]);
    // With access to the data, the user is an admin. An approver revokes only their own grants.
    expect((await here("revoke", grant.id)).code).toBe(0);
    expect((await here("list")).err).toContain("no grants");
  });

  it("names the problem in one line", async () => {
    const wrong: [string[], RegExp][] = [
      [["add", ...TERMS, "--expires", "31d", "--reason", "r"], /at most 30 days/],
      [
        ["add", ...TERMS, "--when", "nonsense", "--expires", "1h", "--reason", "r"],
        /write <path> <op> <value>/,
      ],
      [["revoke", "grt_none"], /unknown grant/],
    ];
    for (const [args, message] of wrong) {
      const { code, err } = await here(...args);
      expect([args, code, err]).toEqual([args, 1, expect.stringMatching(message)]);
    }
  });

  it("previews which captured calls it would have covered, and which rules asked", async () => {
    verifies("beyond.grant.preview");
    for (const id of [10, 11, 12])
      expect(await ask({ id, of: "preview" })).toMatchObject({ decision: "block" });
    const preview = ["preview", ...TERMS, "--when", "$args.of eq preview", "--max-uses", "2"];
    let seen: { covered?: unknown[] } = {};
    await until(async () => {
      seen = JSON.parse((await there(...preview, "--json")).out);
      return seen.covered?.length === 2;
    }, "the calls to be captured");
    expect(seen).toMatchObject({
      calls: expect.any(Number),
      covered: [
        { tool: "pay.refund", actor: "bot", step: null, decision: "needs_approval", rules: ["refunds"] },
        { tool: "pay.refund", actor: "bot" },
      ],
      rules: ["refunds"],
    });
    expect((await here(...preview)).out).toMatch(
      /2 of the last \d+ captured calls would have been covered\nrules that required approval: refunds\n$/,
    );
    expect((await call("aud", "POST", "/v1/grants/preview", {})).status).toBe(403);
  });
});
