/** Flows whose `when` compares a call with an earlier one. */
import { beforeAll, describe, expect, it } from "vitest";
import { loadPolicy } from "../../src/rules/policy/load.ts";
import { type Answer, type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: account.get, effect: read, permission: p}
- {tool: pin.check, effect: read, permission: p, audit: {redaction: [$args.pin]}}
- {tool: pay, effect: irreversible, permission: p, audit: {redaction: [$args.pin]}}
`;
const flow = (id: string, after: string, when: string, more = "") =>
  `  - {id: ${id}, after: {tool: ${after}}, then: {tool: pay}, when: [${when}], reason: ${id}${more}}\n`;

let n = 0;
class Calls {
  readonly id = `compare-${n++}`;
  private readonly s: TestServer;
  private readonly key: string;
  constructor(s: TestServer, key = "bot") {
    this.s = s;
    this.key = key;
  }
  async open(): Promise<this> {
    const body = { run_id: this.id, permissions: ["p"] };
    expect((await this.s.call(this.key, "POST", "/v1/runs", body)).status).toBe(201);
    return this;
  }
  async ask(tool: string, args: unknown): Promise<Answer["body"]> {
    const answer = await this.s.call(this.key, "POST", `/v1/runs/${this.id}/intents`, {
      tool,
      args,
      reason: "r",
    });
    expect(answer.status).toBe(200);
    return answer.body;
  }
  async call(tool: string, args: unknown, outcome: object = {}): Promise<number> {
    const { step, decision } = await this.ask(tool, args);
    expect(decision).toBe("allow");
    const path = `/v1/runs/${this.id}/steps/${step}/outcome`;
    expect((await this.s.call(this.key, "POST", path, { status: "succeeded", ...outcome })).status).toBe(200);
    return step;
  }
  pay = async (args: object) => (await this.ask("pay", args)).decision;
}

const server = (flows: string) =>
  testServer({
    manifests: MANIFESTS,
    policy: `version: 1\nflows:\n${flows}`,
    keys: [
      { name: "bot", role: "agent", max_permissions: ["p"] },
      { name: "other", role: "agent", max_permissions: ["p"] },
    ],
  });

describe("a flow that compares arguments", () => {
  let s: TestServer;
  beforeAll(async () => {
    s = await server(flow("mix", "account.get", "{path: $args.account, op: ne, value: $after.args.account}"));
  });

  it("restricts the later call only if the values differ", async () => {
    verifies("beyond.value.when");
    const run = await new Calls(s).open();
    expect(await run.pay({ account: "x" })).toBe("allow");
    const read = await run.call("account.get", { account: "a" });
    expect(await run.pay({ account: "a" })).toBe("allow");
    expect(await run.ask("pay", { account: "b" })).toMatchObject({
      decision: "block",
      reasons: [`mix; follows step ${read} (account.get) of this run`],
    });
  });

  it("applies if the condition holds for any of several earlier calls", async () => {
    verifies("beyond.value.when-any");
    const run = await new Calls(s).open();
    await run.call("account.get", { account: "a" });
    await run.call("account.get", { account: "a" });
    expect(await run.pay({ account: "a" })).toBe("allow");
    await run.call("account.get", { account: "b" });
    expect(await run.pay({ account: "a" })).toBe("block");
    expect(await run.pay({ account: "b" })).toBe("block");
  });

  it("counts a missing value, or one of another type, against the call", async () => {
    verifies("beyond.value.when-missing");
    const run = await new Calls(s).open();
    await run.call("account.get", {});
    expect(await run.pay({ account: "a" })).toBe("block");
    const typed = await new Calls(s).open();
    await typed.call("account.get", { account: "1" });
    expect(await typed.pay({ account: 1 })).toBe("block");
    expect(await typed.pay({})).toBe("block");
    expect(await typed.pay({ account: "1" })).toBe("allow");
  });

  it("separates the values of two runs", async () => {
    const one = await new Calls(s).open();
    await one.call("account.get", { account: "a" });
    const two = await new Calls(s).open();
    expect(await two.pay({ account: "b" })).toBe("allow");
  });

  it("applies to every call after more different calls than it can compare", async () => {
    const many = await server(
      flow("mix", "account.get", "{path: $args.account, op: eq, value: $after.args.account}"),
    );
    const other = await new Calls(many).open();
    for (let i = 0; i < 201; i++) await other.ask("account.get", { account: `a${i}` });
    const { decision, reasons } = await other.ask("pay", { account: "a0" });
    expect([decision, reasons]).toEqual(["block", ["mix; follows more calls than it can compare"]]);
  });
});

describe("a flow that compares results", () => {
  it("reads the reported result, and restricts until it is known", async () => {
    verifies("beyond.value.when-result");
    const s = await server(
      flow("over", "account.get", "{path: $args.amount, op: gt, value: $after.result.balance}"),
    );
    const run = await new Calls(s).open();
    const { step } = await run.ask("account.get", { account: "a" });
    expect(await run.pay({ amount: 1 })).toBe("block");
    const outcome = { status: "succeeded", result: { balance: 100 } };
    await s.call("bot", "POST", `/v1/runs/${run.id}/steps/${step}/outcome`, outcome);
    expect(await run.pay({ amount: 100 })).toBe("allow");
    expect(await run.pay({ amount: 101 })).toBe("block");
    expect(await run.pay({ amount: "1" })).toBe("block");
    const silent = await new Calls(s).open();
    await silent.call("account.get", { account: "a" });
    expect(await silent.pay({ amount: 1 })).toBe("block");
  });

  it("combines conditions, also with constants", async () => {
    const s = await server(
      flow(
        "both",
        "account.get",
        "{path: $args.currency, op: eq, value: EUR}, {path: $args.account, op: ne, value: $after.args.account}",
      ),
    );
    const run = await new Calls(s).open();
    await run.call("account.get", { account: "a" });
    expect(await run.pay({ currency: "USD", account: "b" })).toBe("allow");
    expect(await run.pay({ currency: "EUR", account: "b" })).toBe("block");
    expect(await run.pay({ currency: "EUR", account: "a" })).toBe("allow");
  });
});

describe("masked paths", () => {
  it("are compared by eq and ne only; an order counts against the call", async () => {
    verifies("beyond.value.when-masked");
    const s = await server(
      flow("same", "pin.check", "{path: $args.pin, op: ne, value: $after.args.pin}") +
        flow("less", "account.get", "{path: $args.pin, op: lt, value: $after.args.pin}"),
    );
    const run = await new Calls(s).open();
    await run.call("pin.check", { pin: 4711 });
    expect(await run.pay({ pin: 4711 })).toBe("allow");
    expect(await run.pay({ pin: 4712 })).toBe("block");
    const ordered = await new Calls(s).open();
    await ordered.call("account.get", { pin: 1 });
    expect(await ordered.pay({ pin: 2 })).toBe("block");
  });
});

describe("within a time", () => {
  it("compares calls of all runs of the agent, and of no other agent", async () => {
    verifies("beyond.value.when-within");
    const s = await server(
      flow("mix", "account.get", "{path: $args.account, op: ne, value: $after.args.account}", ", within: 1h"),
    );
    const one = await new Calls(s).open();
    await one.call("account.get", { account: "a" });
    const two = await new Calls(s).open();
    expect(await two.pay({ account: "b" })).toBe("block");
    expect(await two.pay({ account: "a" })).toBe("allow");
    const stranger = await new Calls(s, "other").open();
    expect(await stranger.pay({ account: "b" })).toBe("allow");
  });
});

describe("the policy check", () => {
  const problem = (when: string): string => {
    try {
      loadPolicy(`version: 1\nflows:\n${flow("f", "a", when)}`, "policy.yaml");
      return "";
    } catch (error) {
      return (error as Error).message;
    }
  };

  it("explains conditions that cannot compare two calls", () => {
    verifies("beyond.value.when-checked");
    const path = "path: $args.a";
    expect(problem(`{${path}, op: gte, value: $after.args.a}`)).toBe("");
    expect(problem(`{${path}, op: contains, value: $after.args.a}`)).toContain(
      "op contains cannot compare two calls; use eq, ne, gt, gte, lt, lte",
    );
    expect(problem(`{${path}, op: eq, value: $after.before.a}`)).toContain(
      '"$after.before.a" is not a path into the first call; write $after.args.name or $after.result.name',
    );
    expect(problem(`{${path}, op: gt, value: "100"}`)).toContain("must be a number (without quotes) (op gt)");
  });
});
