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
- {tool: pay.wire, effect: irreversible, permission: pay, card: {title: Wire, line: "Wire {$args.id}"}}
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
  const ask = async (key: string, tool: string, more: object = {}): Promise<string> => {
    const run_id = `f${n++}`;
    await call(key, "/v1/runs", { run_id, permissions: ["pay"] });
    const { reasons } = await call(key, `/v1/runs/${run_id}/intents`, {
      tool,
      args: { id: n, currency: "EUR", ...more },
      reason: "r",
    });
    return /request (apr_\S+)/.exec(reasons.at(-1))![1]!;
  };
  const refunds = [
    await ask("bot", "pay.refund", { amount: 12 }),
    await ask("bot", "pay.refund", { amount: 13 }),
    await ask("bot", "pay.refund", { amount: 1_840 }),
    await ask("bot", "pay.refund", { amount: 14 }),
  ];
  const wires = [await ask("bot", "pay.wire"), await ask("bot", "pay.wire", { memo: "more" })];
  const theirs = await ask("other", "pay.refund");
  const there = (...args: string[]) =>
    svc(["approvals", ...args, "--server", server.url, "--key-file", "ann.key"], { cwd: folder });

  verifies("beyond.flood.list");
  const past = await there("list");
  expect(past.out).toMatch(new RegExp(`^${refunds[0]} +4 waiting +pay.refund +4 runs +bot`, "m"));
  expect(past.out).toMatch(
    new RegExp(`^${wires[0]} +2 waiting +pay.wire +2 runs +bot +\\(currency, id, memo\\)`, "m"),
  );
  expect(past.out).toMatch(new RegExp(`^${theirs} +pending +pay.refund`, "m"));
  expect(past.out.trim().split("\n")).toHaveLength(3);
  expect((await there("list", "--no-group")).out.trim().split("\n")).toHaveLength(7);
  expect(JSON.parse((await there("list", "--json")).out).approvals).toHaveLength(7);
  const listed = await there("list", "--group", "--json");
  expect(JSON.parse(listed.out).groups).toEqual([
    { actor: "bot", tool: "pay.refund", rule: "ask", waiting: 4, ids: refunds },
    { actor: "bot", tool: "pay.wire", rule: "ask", waiting: 2, ids: wires },
    { actor: "other", tool: "pay.refund", rule: "ask", waiting: 1, ids: [theirs] },
  ]);
  const alone = await there("approve", wires[0]!, "--group");
  expect(alone.code).toBe(1);
  expect(alone.err).toContain("an irreversible call must be decided without --group");
  verifies("beyond.flood.confirm-command", "beyond.flood.table", "beyond.oversight.group-record");
  const listing = (await there("list", "--group")).out;
  expect(listing).toContain("same   currency: EUR");
  expect(listing).toMatch(new RegExp(`request +id +amount\\n +! +${refunds[2]} +\\d+ +1840 \\(unusual\\)`));
  expect(listing).toContain("irreversible: each is decided separately");
  for (const yes of [[], ["--yes", "3"]]) {
    const refused = await there("approve", refunds[1]!, "--group", ...yes);
    expect(refused.code).toBe(1);
    expect(refused.out).toContain(
      "Approve 4 requests for pay.refund by bot: id 1 to 4; amount 12 to 1840; currency EUR?",
    );
    expect(refused.err).toContain("nothing was decided");
  }
  verifies("beyond.flood.exchanged");
  const [shown] = /sha256:[0-9a-f]{64}/.exec(listing.slice(listing.indexOf(refunds[0]!)))!;
  for (const yes of [["--yes"], ["--yes", "4"]]) {
    const unbound = await there("approve", refunds[1]!, "--group", ...yes);
    expect([unbound.code, unbound.err]).toEqual([
      1,
      expect.stringContaining(`confirm it with --yes 4 --card ${shown}`),
    ]);
  }
  // One request is exchanged for another, so the number is the same.
  expect((await there("deny", refunds[0]!)).code).toBe(0);
  refunds[0] = await ask("bot", "pay.refund", { amount: 15 });
  const group = (card: string) => [refunds[1]!, "--group", "--yes", "4", "--card", card];
  const exchanged = await there("approve", ...group(shown));
  expect([exchanged.code, exchanged.err]).toEqual([
    1,
    expect.stringContaining("nothing was decided: the requests are not those of this --card"),
  ]);
  const [current] = /--yes 4 --card (\S+)/
    .exec(exchanged.out + (await there("approve", refunds[1]!, "--group")).err)!
    .slice(1);
  const done = await there("approve", ...group(current!), "--note", "the fair");
  expect(done.code, done.err).toBe(0);
  expect(done.out).toContain("amount 13 to 1840");
  expect(done.out.trim().split("\n").slice(-5).sort()).toEqual(
    ["4 of 4 requests decided", ...refunds.map((id) => `${id}: approved`)].sort(),
  );
  const { approvals } = await call("ann", "/v1/approvals");
  const decided = approvals.filter(({ status }: { status: string }) => status === "approved");
  expect(decided.map(({ id }: { id: string }) => id).sort()).toEqual([...refunds].sort());
  const { records } = await call("ann", "/v1/search/records?event=approved");
  const cards = new Set<string>(
    records.map(
      ({ detail }: { detail: string }) =>
        / in a group of 4: the fair; card (sha256:[0-9a-f]{64})$/.exec(detail)?.[1],
    ),
  );
  expect(records).toHaveLength(4);
  expect(cards.size).toBe(4);
});
