/** The largest calls, cards and plans: others get answers in the meantime, and pages and lists are bounded. */
import { beforeAll, describe, expect, it } from "vitest";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { precomputeCall } from "../../src/operations/values/threads.ts";
import { LARGEST_ARGS, LARGEST_BYTES, LARGEST_PAIRS } from "../../stress/attack/largest.ts";
import { principal, testEngine } from "../support/engine.ts";
import { sized } from "../support/long.ts";
import { type Answer, type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: crm.get, effect: read, permission: p}
- {tool: big.ask, effect: idempotent, permission: p}
- tool: big.edit
  effect: idempotent
  permission: p
  card: {title: "Edit {$args.path}", fields: [{label: edit, path: $args.edit, as: diff}]}
`;
const POLICY = `version: 1
content: {secrets: require_approval, pii: require_approval, injection: require_approval}
rules: [{id: asked, match: {tool: "big.*"}, action: require_approval}]
`;

let s: TestServer;
beforeAll(async () => {
  s = await testServer({ manifests: MANIFESTS, policy: POLICY });
  for (const run_id of ["busy", "large"])
    await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["p"] });
});

const post = (key: string, path: string, body: unknown) => s.call(key, "POST", path, body);

/** How many decisions on other calls are answered before this answer comes. */
async function decisionsBefore(asked: Promise<Answer>): Promise<[number, Answer]> {
  let answered = false;
  const ended = asked.finally(() => {
    answered = true;
  });
  let decisions = 0;
  for (; !answered; decisions++) {
    const call = { tool: "crm.get", args: { n: decisions }, reason: "r" };
    expect((await post("agent", "/v1/runs/busy/intents", call)).body.decision).toBe("allow");
    await new Promise((resolve) => setImmediate(resolve));
  }
  return [decisions, await ended];
}

const idIn = ({ text }: Answer): string => /apr_[0-9a-f-]{36}/.exec(text)![0];

describe("others are answered", { timeout: 300_000 }, () => {
  it.each(["short strings", "keys"])("while a large call is judged: %s", async (shape) => {
    verifies("beyond.heavy.others");
    const args = LARGEST_ARGS[shape]!(sized(LARGEST_BYTES / 3, LARGEST_BYTES));
    const intents = "/v1/runs/large/intents";
    const [judged, asked] = await decisionsBefore(
      post("agent", intents, { tool: "big.ask", args, reason: "r" }),
    );
    const card = `/v1/approvals/${idIn(asked)}/card`;
    const [drawn, shown] = await decisionsBefore(s.call("approver", "GET", card));
    expect(shown.body.card_hash).toMatch(/^sha256:/);
    expect(shown.body.arguments).toEqual(args);
    // At once it would be one or two: those that were sent before it was read.
    expect(judged).toBeGreaterThan(5);
    expect(drawn).toBeGreaterThan(5);
  });

  it("while a plan of a hundred long edits is shown, and the decision is bound to the shown plan", async () => {
    verifies("beyond.heavy.others");
    const [old_text, new_text] = LARGEST_PAIRS["nothing in common"]!(
      LARGEST_BYTES / SERVICE_LIMITS.plan_calls - 200,
    );
    const calls = Array.from({ length: SERVICE_LIMITS.plan_calls }, (_, i) => ({
      tool: "big.edit",
      args: { path: `f${i}`, edit: { old_text, new_text } },
    }));
    const { body: plan } = await post("agent", "/v1/runs/large/plans", { reason: "r", calls });
    const [drawn, shown] = await decisionsBefore(s.call("approver", "GET", `/v1/plans/${plan.id}`));
    expect(shown.body.cards).toHaveLength(SERVICE_LIMITS.plan_calls);
    expect(drawn).toBeGreaterThan(20);
    const { card_hash } = shown.body;
    const [, decided] = await decisionsBefore(
      post("approver", `/v1/plans/${plan.id}/approve`, { card_hash }),
    );
    expect(decided.body.status).toBe("approved");
  });
});

// With patterns that take the square of the length, none of these would be answered for minutes.
it.each([
  ["a number with many zeros", "failed"],
  ["a key with many digits", "failed"],
  ["an address with many slashes", "succeeded"],
])("%s is judged, shown and reported: %s", async (shape, status) => {
  verifies("beyond.heavy.linear-patterns");
  const args = LARGEST_ARGS[shape]!(300_000);
  const asked = await post("agent", "/v1/runs/large/intents", { tool: "big.ask", args, reason: "r" });
  const { body: card } = await s.call("approver", "GET", `/v1/approvals/${idIn(asked)}/card`);
  expect(card.arguments).toEqual(args);
  const call = { tool: "crm.get", args, reason: "r" };
  const { body: decided } = await post("agent", "/v1/runs/busy/intents", call);
  const path = `/v1/runs/busy/steps/${decided.step}/outcome`;
  const outcome = status === "failed" ? { error: `1.${"0".repeat(300_000)}1` } : { result: args };
  expect((await post("agent", path, { status, ...outcome })).status).toBe(200);
});

it("a request lists a bounded number of its arguments' names, and counts the rest", async () => {
  verifies("beyond.heavy.names-listed");
  const args = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`name${i}`, i]));
  const asked = await post("agent", "/v1/runs/large/intents", { tool: "big.ask", args, reason: "r" });
  const { body } = await s.call("auditor", "GET", `/v1/approvals/${idIn(asked)}`);
  expect(body.arg_names).toHaveLength(SERVICE_LIMITS.arg_names + 1);
  expect(body.arg_names.at(-1)).toBe("(800 more arguments)");
  const { body: card } = await s.call("approver", "GET", `/v1/approvals/${idIn(asked)}/card`);
  expect(card.more.at(-1)).toMatchObject({ label: "800 more arguments", path: "$args" });
  // Each of them is on the card, one by one or in the last field.
  expect(card.text).toMatch(/^"name0".*: 0$/m);
  expect(card.text).toContain('"name999": 999');
});

/** A list that counts the reads of its members. */
function countedList(length: number): { list: JsonValue[]; looks: () => number } {
  let looks = 0;
  const list = new Proxy(
    Array.from({ length }, (_, i) => `s${i}`),
    {
      get(target, name, receiver) {
        if (typeof name === "string" && /^\d+$/.test(name)) looks++;
        return Reflect.get(target, name, receiver) as unknown;
      },
    },
  );
  return { list, looks: () => looks };
}

describe("a unit of work", () => {
  it("looks at no member of a large value that was looked through before", async () => {
    verifies("beyond.heavy.unit");
    const engine = testEngine({ manifests: MANIFESTS, policy: POLICY });
    const agent = principal("agent");
    await engine.open(agent, { run_id: "r", permissions: ["p"] });
    const { list, looks } = countedList(20_000);
    const args = { list };
    await precomputeCall(engine.core, { tool: "big.ask", args });
    const before = looks();
    expect(before).toBeGreaterThanOrEqual(20_000);
    const decision = await engine.intent(agent, "r", "big.ask", args);
    expect(decision.decision).toBe("block");
    // A store that writes records reads them once more. The store in memory doesn't.
    expect(looks() - before).toBeLessThan(20_000);
  });
});
