/** The card of a request: its content, its readers, and that a decision holds for this content. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- tool: pay.refund
  effect: compensable
  permission: pay
  risk: {data_class: financial, blast_radius: external}
  compensation: {tool: pay.charge, args: {id: $args.charge}, kind: compensation, residue: [fees stay]}
  audit: {redaction: [$args.iban, $args.customer.name, $args.memo]}
  card:
    title: "Refund {$args.amount} {$args.currency} to {$args.customer.id} ({$args.ticket})"
    fields:
      - {label: Amount, path: $args.amount, as: money}
      - {label: When, path: $args.at, as: time}
      - {label: Shape, path: $args.shape, as: code}
      - {label: Edit, path: $args.edit, as: diff}
      - {label: Name, path: $args.customer.name}
    reveal: [$args.customer.name, $args.memo]
    note: Over 1,000 ask the customer first.
- {tool: mail.send, effect: irreversible, permission: mail, audit: {redaction: [$args.body]}}
- {tool: read.it, effect: read, permission: pay}
`;
const POLICY = `
version: 1
rules:
  - {id: refunds, match: {tool: "pay.*"}, action: require_approval, reason: a person looks at every refund, approval: {groups: [finance]}}
  - {id: mails, match: {tool: mail.send}, action: require_approval, reason: mail leaves the house}
content: {pii: require_approval}
risk: {require_approval_at: 55}
`;
const SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ456789";
const REFUND = {
  amount: 1250.5,
  currency: "EUR",
  customer: { id: "cus_7", name: "Ada Lovelace" },
  iban: "DE00 1234",
  charge: "ch_1",
  at: 1_765_000_000,
  shape: { a: 1 },
  edit: [{ oldText: "one\ntwo", newText: "one\n2" }],
  memo: `key ${SECRET} for ada@example.com`,
};
let s: TestServer;
let n = 0;
beforeAll(async () => {
  s = await testServer({
    manifests: MANIFESTS,
    policy: POLICY,
    environment: "prod",
    keys: [
      { name: "fin", role: "approver", groups: ["finance"] },
      { name: "fin2", role: "approver", groups: ["finance"] },
      { name: "helper", role: "auditor" },
    ],
  });
});

async function asked(tool: string, args: unknown, more: { reason?: string; run_reason?: string } = {}) {
  const run_id = `card${n++}`;
  const { reason = "the parcel was lost", run_reason = "support ticket 12" } = more;
  await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["pay", "mail"], reason: run_reason });
  const ask = async () =>
    (await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, { tool, args, reason })).body;
  const id = /apr_[0-9a-f-]{36}/.exec(JSON.stringify(await ask()))![0];
  const card = (key: string) => s.call(key, "GET", `/v1/approvals/${id}/card`);
  const decide = (key: string, verb: string, body: object = {}) =>
    s.call(key, "POST", `/v1/approvals/${id}/${verb}`, body);
  return { run_id, id, ask, card, decide };
}

describe("what a card says", () => {
  it("shows the call in the manifest's words, its fields and its values", async () => {
    verifies("beyond.card.args-kept", "beyond.card.title", "beyond.card.fields", "beyond.card.note");
    verifies("beyond.card.not-given", "beyond.card.personal-data-stays", "beyond.card.redaction-masked");
    verifies("beyond.card.credentials-out", "beyond.card.way-back", "beyond.card.run-reason");
    const { body } = await (await asked("pay.refund", REFUND)).card("fin");
    expect(body.sentence).toBe("Refund 1250.5 EUR to cus_7 ((not given))");
    expect(body.fields.map(({ label, text }: { label: string; text: string }) => [label, text])).toEqual([
      ["Amount", "1,250.50"],
      ["When", "2025-12-06 05:46:40 UTC"],
      ["Shape", '{\n  "a": 1\n}'],
      ["Edit", expect.any(String)],
      ["Name", "Ada Lovelace"],
    ]);
    expect(body.fields[3].lines).toEqual([
      { kind: "same", text: "one" },
      { kind: "removed", text: "two" },
      { kind: "added", text: "2" },
    ]);
    expect(body.note).toBe("Over 1,000 ask the customer first.");
    expect(body.arguments.iban).toBe("[REDACTED]");
    expect(body.arguments.memo).toBe("key [REDACTED:github_token] for ada@example.com");
    expect(body.arguments.customer).toEqual({ id: "cus_7", name: "Ada Lovelace" });
    expect(body.more.map(({ label }: { label: string }) => label)).toEqual([
      "customer",
      "iban",
      "charge",
      "memo",
    ]);
    expect(body).toMatchObject({
      reason: "the parcel was lost",
      run_reason: "support ticket 12",
      rule: { id: "refunds", reason: "a person looks at every refund" },
      way_back: { tool: "pay.charge", residue: ["fees stay"] },
      irreversible: false,
    });
    expect(body.card_hash).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(JSON.stringify(body)).not.toContain(SECRET);
  });

  it("names each exact cause, and factors that add up to the score", async () => {
    verifies("beyond.card.cause");
    const { body } = await (await asked("pay.refund", REFUND)).card("fin");
    expect(body.causes).toEqual([
      "content check (pii): email at $args.memo",
      "a person looks at every refund",
      "risk score 75 is at or above 55",
    ]);
    expect(body.risk).toMatchObject({
      score: 75,
      text: "effect compensable 25 + blast radius external 25 + data class financial 20 + environment not declared 5 = 75",
    });
  });

  it("says that nothing takes an irreversible call back", async () => {
    verifies("beyond.card.irreversible");
    const { body } = await (await asked("mail.send", { to: "a@example.com", body: "hello" })).card(
      "approver",
    );
    expect(body).toMatchObject({ irreversible: true, way_back: { text: "This cannot be undone." } });
    expect(body.text).toContain("This cannot be undone.");
    expect(body.arguments).toEqual({ to: "a@example.com", body: "[REDACTED]" });
    expect(body.sentence).toBe("Call mail.send");
  });

  it("tells of the run so far and of like requests", async () => {
    verifies("beyond.card.history");
    const first = await asked("mail.send", { to: "history" });
    const before = (await first.card("approver")).body.like;
    await first.decide("approver", "deny");
    const second = await asked("mail.send", { to: "history" });
    await second.decide("approver", "approve");
    expect((await second.ask()).decision).toBe("allow");
    const third = await asked("mail.send", { to: "history" });
    await s.call("agent", "POST", `/v1/runs/${third.run_id}/intents`, {
      tool: "read.it",
      args: {},
      reason: "r",
    });
    const { body } = await third.card("approver");
    expect(body.like).toEqual({ approved: before.approved + 1, denied: before.denied + 1 });
    expect(body.so_far).toEqual({ calls: 1, last: [{ step: 0, tool: "read.it", status: "intended" }] });
  });

  it("writes a moment in UTC where it says its zone, and anything else as it was given", async () => {
    verifies("beyond.card.time");
    const given: [unknown, string][] = [
      ["2026-11-18T10:00:00+02:00", "2026-11-18 08:00:00 UTC"],
      ["2026-11-18T10:00Z", "2026-11-18 10:00:00 UTC"],
      ["2026-11-18T10:00:00", "2026-11-18T10:00:00"],
      ["2026-02-30T10:00:00Z", "2026-02-30T10:00:00Z"],
      ["2026-11-18", "2026-11-18"],
    ];
    for (const [at, text] of given) {
      const { body } = await (await asked("pay.refund", { ...REFUND, at })).card("fin");
      expect(body.fields[1]).toMatchObject({ label: "When", text });
    }
  });

  it("keeps hostile values inside their places", async () => {
    verifies("beyond.card.inert");
    const long = "x".repeat(900_000);
    const { body } = await (
      await asked("pay.refund", {
        amount: "1\nCause: none",
        currency: "\u202eEUR\u0007",
        customer: { id: "<b>{$args.amount}</b>", name: long },
        ticket: "\u200b\ud83d\ude00",
      })
    ).card("fin");
    expect(body.sentence).toBe(
      "Refund 1\\nCause: none \\u202eEUR\\u0007 to <b>{$args.amount}</b> (\\u200b\u{1f600})",
    );
    const name = body.fields.find(({ label }: { label: string }) => label === "Name").text;
    expect(name).toBe(long);
    expect(body.text.split("\n").filter((line: string) => line.startsWith("Cause"))).toHaveLength(2);
  });
});

describe("who sees it", () => {
  it("those whose vote counts or counted, delegates and admins; nobody else knows of it", async () => {
    verifies("beyond.card.route");
    const one = await asked("pay.refund", REFUND);
    for (const key of ["fin", "fin2", "admin"]) expect((await one.card(key)).status, key).toBe(200);
    for (const key of ["agent", "agent2", "auditor", "approver", "operator", "helper"]) {
      const refused = await one.card(key);
      expect([refused.status, refused.body.error], key).toEqual([404, `unknown approval request ${one.id}`]);
    }
    expect((await s.call(null, "GET", `/v1/approvals/${one.id}/card`)).status).toBe(401);
    const expires_at = new Date(s.env.now() + 3_600_000).toISOString();
    await s.call("fin2", "POST", "/v1/delegations", {
      to: "helper",
      expires_at,
      reason: "away",
      tools: "pay.*",
    });
    expect((await one.card("helper")).status).toBe(200);
    const unknown = "apr_00000000-0000-4000-8000-000000000000";
    expect((await s.call("fin", "GET", `/v1/approvals/${unknown}/card`)).status).toBe(404);
  });

  it("loses the values the moment the request ends, whichever way", async () => {
    verifies("beyond.card.args-deleted");
    const canary = "canary-4f1c";
    const gone = async (one: Awaited<ReturnType<typeof asked>>, key = "fin") => {
      const { body, text } = await one.card(key);
      expect(body).toMatchObject({ arguments: null, card_hash: null });
      expect(text).not.toContain(canary);
      expect(body.sentence).toBe("Refund (not kept) (not kept) to (not kept) ((not kept))");
      expect(await s.app.core.store.get("approval_values", one.id)).toBeUndefined();
    };
    const args = { ...REFUND, currency: canary };
    const denied = await asked("pay.refund", args);
    expect((await denied.card("fin")).text).toContain(canary);
    await denied.decide("fin", "deny");
    await gone(denied);
    const used = await asked("pay.refund", args);
    await used.decide("fin", "approve");
    expect((await used.card("fin")).body.arguments.currency).toBe(canary);
    expect((await used.ask()).decision).toBe("allow");
    await gone(used);
    const late = await asked("pay.refund", args);
    await s.env.advance(25 * 3_600_000);
    expect((await late.decide("fin", "approve")).status).toBe(409);
    await gone(late);
  });
});

describe("a decision by the card", () => {
  it("is recorded with its hash, and only where one was sent", async () => {
    verifies("beyond.card.hash-recorded");
    const details = async (run_id: string) =>
      (await s.call("auditor", "GET", `/v1/search/records?run_id=${run_id}`)).body.records.map(
        (record: { detail: string }) => record.detail,
      );
    const one = await asked("pay.refund", REFUND);
    const { card_hash } = (await one.card("fin")).body;
    expect((await one.decide("fin", "approve", { note: "fine", card_hash })).status).toBe(200);
    expect(await details(one.run_id)).toContain(`request ${one.id}: fine; card ${card_hash}`);
    const two = await asked("pay.refund", REFUND);
    const hash = (await two.card("fin")).body.card_hash;
    await two.decide("fin", "deny", { card_hash: hash });
    expect(await details(two.run_id)).toContain(`request ${two.id}; card ${hash}`);
    const three = await asked("pay.refund", REFUND);
    await three.decide("fin", "deny", { note: "no" });
    expect(await details(three.run_id)).toContain(`request ${three.id}: no`);
  });

  it("is refused where the card has changed, and nothing is decided", async () => {
    verifies("beyond.card.hash-409", "beyond.card.hash-stable");
    const one = await asked("pay.refund", REFUND);
    const { card_hash } = (await one.card("fin")).body;
    // What happens around the request leaves the hash as it is.
    const other = await asked("pay.refund", REFUND);
    await other.decide("fin", "deny");
    await s.env.advance(60_000);
    expect((await one.card("fin2")).body.card_hash).toBe(card_hash);
    // The same values in another run hash otherwise: the run's own salt keys them.
    expect((await other.card("fin")).body.card_hash).not.toBe(card_hash);
    const stale = `sha256:${"0".repeat(64)}`;
    for (const verb of ["approve", "deny"]) {
      const refused = await one.decide("fin", verb, { card_hash: stale });
      expect([refused.status, refused.body.error]).toEqual([
        409,
        "the card has changed since you saw it; review it again, then decide",
      ]);
      expect((await one.decide("fin", verb, { card_hash: "x" })).status).toBe(400);
    }
    expect((await s.call("auditor", "GET", `/v1/approvals/${one.id}`)).body).toMatchObject({
      status: "pending",
      votes: [],
    });
    expect((await one.decide("fin", "approve", { card_hash })).body.status).toBe("approved");
  });
});

describe("rules that change while a request is open", () => {
  const use = async (name: string, text: string) => {
    writeFileSync(join(s.folder, name), text);
    expect((await s.call("admin", "POST", "/v1/reload", {})).status).toBe(200);
  };

  it("are on its card once the call is asked for again, and a decision by the old card is refused", async () => {
    verifies("beyond.card.rules-in-force");
    const one = await asked("pay.refund", REFUND);
    const { card_hash } = (await one.card("fin")).body;
    await use(
      "policy.yaml",
      POLICY.replace("id: refunds", "id: returns").replace("groups: [finance]", "quorum: 2"),
    );
    await one.ask();
    const { body } = await one.card("fin");
    expect(body.rule).toMatchObject({ id: "returns" });
    expect(body.card_hash).not.toBe(card_hash);
    expect((await one.decide("fin", "approve", { card_hash })).status).toBe(409);
    const { approvers } = (await s.call("fin", "GET", `/v1/approvals/${one.id}`)).body;
    expect(approvers).toEqual({ groups: [], quorum: 2 });
    await use("policy.yaml", POLICY);
  });

  it("mask what they mask now, at any place of the sentence and the fields", async () => {
    verifies("beyond.card.rules-in-force", "beyond.card.masked-below");
    const one = await asked("pay.refund", REFUND);
    expect((await one.card("fin")).body.sentence).toContain("cus_7");
    const masked = MANIFESTS.replace("$args.customer.name, $args.memo]}", "$args.customer, $args.memo]}");
    await use("manifests.yaml", masked.replace("reveal: [$args.customer.name, $args.memo]", "reveal: []"));
    const { body } = await one.card("fin");
    expect(body.sentence).toBe("Refund 1250.5 EUR to [REDACTED] ((not given))");
    expect(JSON.stringify(body)).not.toMatch(/cus_7|Lovelace/);
    await use("policy.yaml", `${POLICY}approvals: {show: names}\n`);
    expect((await one.card("fin")).body.arguments).toBeNull();
    await use("policy.yaml", POLICY);
    await use("manifests.yaml", MANIFESTS);
  });
});
