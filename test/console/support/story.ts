/**
 * A day in the life of a small shop whose agents refund, mail, deploy and keep the CRM: enough of everything
 * that each page has something to show. Used for the pictures in the documentation, and by the browser tests.
 */
import { newKeyPair } from "../../../src/evidence/signing.ts";
import { type FakeEnv, fakeEnv, seeded } from "../../support/env.ts";
import { type ConsoleServer, consoleServer } from "./server.ts";

const HOUR = 3_600_000;

export const STORY_MANIFESTS = `
- {tool: orders.lookup, effect: read, permission: orders.read, owner: commerce, risk: {data_class: internal, blast_radius: none}}
- {tool: crm.get_contact, effect: read, permission: crm.read, owner: sales-ops, risk: {data_class: pii, blast_radius: none}}
- tool: crm.update_contact
  version: "2.1"
  effect: reversible
  permission: crm.write
  owner: sales-ops
  risk: {data_class: pii, blast_radius: single}
  compensation: {tool: crm.restore_contact, args: {id: $args.id, revision: $result.revision}, kind: inverse}
  verification: {tool: crm.get_contact, args: {id: $args.id}, expect: {restored: true}}
- tool: payments.refund
  version: "3.0"
  effect: compensable
  permission: payments.refund
  owner: finance
  idempotency: $args.order_id
  risk: {data_class: financial, blast_radius: external}
  card:
    title: Refund {$args.amount} {$args.currency} for order {$args.order_id}
    fields:
      - {label: Amount, path: $args.amount, as: money}
      - {label: To, path: $args.to, as: text}
  compensation:
    tool: payments.reclaim
    args: {refund_id: $result.refund_id}
    residue: ["the customer has seen the refund on their statement"]
    requires_approval: true
  audit: {retention_days: 365, evidence_export: required}
- tool: inventory.reserve
  effect: reversible
  permission: inventory.write
  owner: warehouse
  risk: {data_class: internal, blast_radius: team}
  compensation: {tool: inventory.release, args: {reservation: $result.reservation}, kind: inverse}
- tool: mail.send
  effect: irreversible
  permission: mail.send
  owner: support
  risk: {data_class: pii, blast_radius: external}
  card: {title: "Mail {$args.to}", fields: [{label: Subject, path: $args.subject, as: text}]}
  audit: {redaction: [$args.body]}
- tool: deploy.rollout
  version: "1.4"
  effect: compensable
  permission: deploy.run
  owner: platform
  risk: {data_class: internal, blast_radius: org}
  compensation: {tool: deploy.rollback, args: {release: $args.release}, residue: ["requests served by the bad release"]}
- {tool: deploy.rollout, version: "2.0", lifecycle: draft, effect: compensable, permission: deploy.run, owner: platform, compensation: {tool: deploy.rollback, args: {release: $args.release}}}
- {tool: legacy.export, effect: idempotent, permission: legacy.export, lifecycle: deprecated, owner: data}
`;

export const STORY_POLICY = `# What the shop thinks of its agents' calls.
version: 1
rules:
  - id: big-refunds
    match: {tool: payments.refund}
    when: [{path: $args.amount, op: gt, value: 500}]
    action: require_approval
    reason: refunds over 500 need somebody from finance
    approval: {groups: [finance], ttl: 4h}
  - id: outside-mail
    match: {tool: mail.send}
    when: [{path: $args.to, op: not_matches, value: "@shop\\\\.example$"}]
    action: require_approval
    reason: mail to customers is read by a person first
  - id: interns-stay-on-staging
    match: {tool: "deploy.*", actor: intern-*}
    action: deny
    reason: interns deploy to staging
content: {secrets: deny, pii: warn}
risk: {}
limits:
  - {id: mail-rate, match: {tool: "mail.*"}, max: 200, per: actor, window: 1h, action: deny}
budgets:
  - {id: refunds-a-day, match: {tool: payments.refund}, path: $args.amount, max: 20000, per: tenant, window: 1d, warn_at: 0.8, action: require_approval}
retention:
  default_days: 90
  rules: [{match: {tool: "payments.*"}, days: 365}]
tests:
  - {name: a small refund passes, input: {tool: payments.refund, args: {amount: 20}}, expect: allow}
  - {name: a big refund waits, input: {tool: payments.refund, args: {amount: 900}}, expect: require_approval, rule: big-refunds}
  - {name: mail inside the shop passes, input: {tool: mail.send, args: {to: ann@shop.example}}, expect: allow}
`;

const CONFIG = `console: login
environment: prod
capture: {enabled: true}
signing_key: evidence.key
anchor: {sinks: [{type: file, path: anchors.jsonl}]}
notifications:
  channels:
    - {name: ops, type: slack, url: "https://hooks.slack.example/T0/B0/x", events: [approval_requested, alert, alert_resolved]}
    - {name: audit-log, type: webhook, url: "https://siem.shop.example/svc", secret: s3cret-signing-word}
egress: {allow: ["hooks.slack.example", "*.shop.example"], block_private: true, region: eu-central}
rollback: {compensator_cmd: "node $FOLDER/compensate.mjs"}
`;

const COMPENSATOR = `let text = "";
process.stdin.on("data", (part) => { text += part; });
process.stdin.on("end", () => {
  const call = JSON.parse(text);
  if (call.tool === "inventory.release") { console.error("warehouse system answered 503"); process.exit(1); }
});
`;

export interface Story extends ConsoleServer {
  env: FakeEnv;
  /** The run with a bit of everything. */
  main_run: string;
}

const AGENTS = ["support-bot", "crm-sync", "release-agent", "trial-agent"].map((name) => ({
  name,
  role: "agent",
}));
const PEOPLE = [
  { name: "maria.finance", role: "approver", groups: ["finance"] },
  { name: "tom.ops", role: "operator", groups: ["platform"] },
  { name: "lea.audit", role: "auditor" },
  { name: "noor.admin", role: "admin", groups: ["finance", "platform"] },
];

export async function tellStory(now: number): Promise<Story> {
  const env = fakeEnv({ now: now - 24 * HOUR, seed: 11 });
  const server = await consoleServer({
    env,
    config: CONFIG,
    manifests: STORY_MANIFESTS,
    policy: STORY_POLICY,
    keys: [...AGENTS, ...PEOPLE],
    files: { "evidence.key": newKeyPair().private_pem, "compensate.mjs": COMPENSATOR },
  });
  const teller = new Teller(server, env, now);
  const main_run = "ticket-48213";
  await teller.tell([
    ...teller.day(),
    teller.decided(),
    teller.oldTrouble(),
    teller.mainRun(main_run),
    ...teller.waitingRequests(),
  ]);
  env.setNow(now);
  await server.app.capture?.drain(5_000);
  return { ...server, env, main_run, close: () => closing(server, env) };
}

/** Lets time pass for pending work, such as a channel that nobody answers. */
async function closing(server: ConsoleServer, env: FakeEnv): Promise<void> {
  let closed = false;
  const done = server.close().finally(() => {
    closed = true;
  });
  while (!closed) await env.advance(1_000);
  await done;
}

interface Asked {
  decision: string;
  step?: number;
  reasons?: string[];
}

/** Something that happens at its time of the day. */
interface Scene {
  at: number;
  play(): Promise<void>;
}

class Teller {
  private readonly server: ConsoleServer;
  private readonly env: FakeEnv;
  private readonly now: number;
  private readonly random = seeded(5);
  private runs = 0;
  private order = 20_000;

  constructor(server: ConsoleServer, env: FakeEnv, now: number) {
    this.server = server;
    this.env = env;
    this.now = now;
  }

  private async open(key: string, reason: string, id?: string, mode = "enforce"): Promise<string> {
    const run_id = id ?? `${key}-${String(++this.runs).padStart(4, "0")}`;
    const permissions = [
      "orders.read",
      "crm.read",
      "crm.write",
      "payments.refund",
      "inventory.write",
      "mail.send",
      "deploy.run",
    ];
    const { status, body } = await this.server.api(key, "POST", "/v1/runs", {
      run_id,
      permissions,
      reason,
      mode,
    });
    if (status !== 201) throw new Error(JSON.stringify(body));
    return run_id;
  }

  private async ask(
    key: string,
    run: string,
    tool: string,
    args: object,
    reason: string,
    depends_on: number[] = [],
  ): Promise<Asked> {
    const { body } = await this.server.api(key, "POST", `/v1/runs/${run}/intents`, {
      tool,
      args,
      reason,
      depends_on,
    });
    return body as Asked;
  }

  private async end(
    key: string,
    run: string,
    step: number,
    status: string,
    more: object = {},
  ): Promise<void> {
    this.env.setNow(this.env.now() + 200 + Math.floor(this.random() * 900));
    await this.server.api(key, "POST", `/v1/runs/${run}/steps/${step}/outcome`, { status, ...more });
  }

  private async done(
    key: string,
    run: string,
    tool: string,
    args: object,
    reason: string,
    result: object,
    depends_on: number[] = [],
  ) {
    const asked = await this.ask(key, run, tool, args, reason, depends_on);
    if (asked.step !== undefined) await this.end(key, run, asked.step, "succeeded", { result });
    return asked.step;
  }

  /** In the order in which it happened, as a ledger has it. */
  async tell(scenes: readonly Scene[]): Promise<void> {
    for (const { at, play } of scenes.toSorted((a, b) => a.at - b.at)) {
      this.env.setNow(Math.max(at, this.env.now()));
      await play();
    }
  }

  /** A quiet night, a busy morning, and an agent that tried something it should not. */
  day(): Scene[] {
    const scenes: Scene[] = [];
    for (let hour = 0; hour < 24; hour++) {
      const start = this.now - (24 - hour) * HOUR;
      const local = new Date(start).getUTCHours();
      const load = 2 + Math.round(11 * Math.exp(-((local - 14) ** 2) / 26) + this.random() * 3);
      for (let i = 0; i < load; i++) {
        const at = start + Math.floor(((i + this.random()) / load) * 0.93 * HOUR);
        scenes.push({ at, play: () => this.smallWork(i) });
      }
    }
    return scenes;
  }

  /** What people decided this morning: one went through and was done, one was turned down. */
  decided(): Scene {
    return {
      at: this.now - 5.2 * HOUR,
      play: async () => {
        const key = "support-bot";
        const paid = await this.open(key, "ticket 48120: broken on arrival", "ticket-48120");
        const refund = { order_id: "A-16804", amount: 920, currency: "EUR" };
        await this.ask(key, paid, "payments.refund", refund, "the carrier confirmed the damage");
        const mail = await this.open(key, "ticket 48131: late delivery", "ticket-48131");
        const promise = { to: "sam@customer.example", body: "You get it for free." };
        await this.ask(key, mail, "mail.send", promise, "the customer is angry; promise a gift");
        this.env.setNow(this.env.now() + 11 * 60_000);
        await this.decide(paid, "maria.finance", "approve", "checked against the carrier's report");
        await this.decide(
          mail,
          "noor.admin",
          "deny",
          "we do not promise gifts; use the late delivery template",
        );
        await this.done(key, paid, "payments.refund", refund, "the carrier confirmed the damage", {
          refund_id: "r-5488",
        });
      },
    };
  }

  private async decide(run: string, by: string, decision: "approve" | "deny", note: string): Promise<void> {
    const { body } = await this.server.api(by, "GET", "/v1/approvals");
    const { id } = body.approvals.find((one: { run_id: string }) => one.run_id === run);
    const { status } = await this.server.api(by, "POST", `/v1/approvals/${id}/${decision}`, { note });
    if (status !== 200) throw new Error(`${run}: ${status}`);
  }

  private async smallWork(i: number): Promise<void> {
    if (this.random() < 0.06) return this.trial();
    // Never one of the orders that the story names, and none twice: a second refund of an order would be refused.
    this.order += 1 + Math.floor(this.random() * 90);
    const order = `A-${this.order}`;
    const crm = i % 3 === 0;
    const key = crm ? "crm-sync" : "support-bot";
    const run = await this.open(key, crm ? "keep contacts current" : `ticket about order ${order}`);
    await this.done(
      key,
      run,
      crm ? "crm.get_contact" : "orders.lookup",
      { id: order },
      "look before changing",
      { found: true },
    );
    if (crm)
      await this.done(key, run, "crm.update_contact", { id: order }, "address changed", { revision: 4 });
    else if (this.random() < 0.5)
      await this.done(
        key,
        run,
        "payments.refund",
        { order_id: order, amount: 20 + Math.floor(this.random() * 120) },
        "damaged on arrival",
        { refund_id: `r-${order}` },
      );
    if (this.random() < 0.16)
      await this.ask(key, run, "legacy.export", { table: "orders" }, "the report wants it");
  }

  /** A new agent in a trial mode: calls that `enforce` would stop pass, and are reported. */
  private async trial(): Promise<void> {
    const run = await this.open("trial-agent", "answer a customer", undefined, "observe");
    await this.done("trial-agent", run, "orders.lookup", { id: "A-1" }, "find the order", { found: true });
    await this.done("trial-agent", run, "mail.send", { to: "kim@customer.example" }, "send the invoice", {
      id: "m",
    });
  }

  /** A call of this morning with an unknown outcome. */
  oldTrouble(): Scene {
    return { at: this.now - 2.4 * HOUR, play: () => this.unclearRollout() };
  }

  private async unclearRollout(): Promise<void> {
    const run = await this.open("release-agent", "roll out the search fix", "release-2026-31");
    const asked = await this.ask(
      "release-agent",
      run,
      "deploy.rollout",
      { release: "2026.31" },
      "canary was healthy for 30 minutes",
    );
    await this.end("release-agent", run, asked.step!, "uncertain", {
      error: "the cluster's API did not answer within 60 s",
    });
  }

  mainRun(id: string): Scene {
    return { at: this.now - 0.55 * HOUR, play: () => this.lostParcel(id) };
  }

  private async lostParcel(id: string): Promise<void> {
    const key = "support-bot";
    const run = await this.open(
      key,
      "ticket 48213: parcel lost, customer asks for a replacement and an apology",
      id,
    );
    await this.done(key, run, "orders.lookup", { id: "A-14410" }, "find the order", { found: true });
    await this.done(
      key,
      run,
      "crm.update_contact",
      { id: "c-771" },
      "the customer moved",
      { revision: 12 },
      [0],
    );
    await this.done(
      key,
      run,
      "inventory.reserve",
      { sku: "lamp-3" },
      "hold a replacement",
      { reservation: "res-90" },
      [0],
    );
    await this.done(
      key,
      run,
      "payments.refund",
      { order_id: "A-14410", amount: 64 },
      "shipping costs back",
      { refund_id: "r-5512" },
      [0],
    );
    await this.done(
      key,
      run,
      "mail.send",
      { to: "team@shop.example", body: "lamp-3 is reserved" },
      "tell the warehouse",
      { id: "m1" },
      [2],
    );
    const asked = await this.ask(
      key,
      run,
      "crm.update_contact",
      { id: "c-771", note: "vip" },
      "mark for follow-up",
      [1],
    );
    await this.end(key, run, asked.step!, "failed", {
      error: "409 from the CRM: the contact is locked by another edit",
    });
    await this.ask(
      key,
      run,
      "mail.send",
      { to: "jo@customer.example", body: "We are sorry." },
      "apologise to the customer",
      [3],
    );
    await this.ask(key, run, "deploy.migrate", { database: "orders" }, "the order table is slow");
  }

  waitingRequests(): Scene[] {
    const ask = (
      minutes: number,
      key: string,
      id: string,
      why: string,
      tool: string,
      args: object,
      reason: string,
    ): Scene => ({
      at: this.now - minutes * 60_000,
      play: async () => void (await this.ask(key, await this.open(key, why, id), tool, args, reason)),
    });
    return [
      ask(
        38,
        "support-bot",
        "ticket-48199",
        "ticket 48199: wrong invoice",
        "payments.refund",
        { order_id: "A-17310", amount: 1_840, currency: "EUR", to: "original card" },
        "charged twice for order A-17310; the payment provider confirms the duplicate",
      ),
      ask(
        21,
        "support-bot",
        "ticket-48207",
        "ticket 48207: warranty",
        "mail.send",
        { to: "lin@customer.example", subject: "Your warranty claim", body: "Dear Lin, ..." },
        "the claim was accepted; the customer waits for the return label",
      ),
      ask(
        9,
        "release-agent",
        "release-2026-32",
        "roll out checkout 2026.32",
        "payments.refund",
        { order_id: "A-18022", amount: 760, currency: "EUR" },
        "refund the orders that the broken checkout double-booked",
      ),
    ];
  }
}
