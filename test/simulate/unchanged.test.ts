/** An unchanged policy must show no changes in a simulation over any history. */
import { expect, it } from "vitest";
import { approveRequest } from "../../src/operations/approvals/approvals.ts";
import { principal } from "../support/engine.ts";
import { seeded } from "../support/env.ts";
import { AGENT, type Capturing, capturing, simulated } from "./support.ts";

const POLICY = `
version: 1
rules:
  - {id: big, match: {tool: pay.charge}, when: [{path: $args.amount, op: gt, value: 50}], action: require_approval}
  - {id: never, match: {tool: mail.send}, when: [{path: $args.to, op: eq, value: all}], action: deny}
limits:
  - {id: reads, match: {tool: crm.get}, max: 12, per: actor, window: 10m}
  - {id: mails, match: {tool: "mail.*"}, max: 5, per: global, window: 1h, action: require_approval}
budgets:
  - {id: spend, match: {tool: pay.charge}, path: $args.amount, max: 400, per: tenant, window: 2h, warn_at: 0.5}
risk: {require_approval_at: 85}
`;

const APPROVER = principal("boss", "approver");
const OTHER = principal("other");
const MODES = ["enforce", "enforce", "enforce", "observe", "advise"] as const;
const TOOLS = ["crm.get", "crm.open", "crm.create", "pay.charge", "mail.send", "no.such", "new.tool"];

interface Open {
  run_id: string;
  step: number;
  who: typeof AGENT;
}

/** Many runs at once, outcomes that come late, approvals, failures and retries, minutes in between. */
async function live(s: Capturing, seed: number, turns: number): Promise<void> {
  const random = seeded(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const runs: { run_id: string; who: typeof AGENT; steps: number[] }[] = [];
  const open: Open[] = [];
  const asked: { run_id: string; tool: string; args: Record<string, unknown>; who: typeof AGENT }[] = [];
  for (let turn = 0; turn < turns; turn++) {
    s.env.setNow(s.env.now() + Math.floor(random() * random() * 180_000));
    if (runs.length < 3 || random() < 0.05) {
      const run = { run_id: `run-${seed}-${runs.length}`, who: pick([AGENT, OTHER]), steps: [] };
      await s.open(run.run_id, pick(MODES), run.who);
      runs.push(run);
    }
    const chance = random();
    if (chance < 0.3 && open.length > 0) {
      const [one] = open.splice(Math.floor(random() * open.length), 1);
      const status = pick(["succeeded", "succeeded", "succeeded", "failed", "uncertain"] as const);
      await s.done(one!.run_id, one!.step, { status, result: { id: `r${turn}` } }, one!.who);
      continue;
    }
    const again = chance > 0.85 && asked.length > 0 ? pick(asked) : undefined;
    const run = again === undefined ? pick(runs) : runs.find(({ run_id }) => run_id === again.run_id)!;
    const tool = again?.tool ?? pick(TOOLS);
    const args = again?.args ?? {
      amount: Math.floor(random() * 100),
      email: `p${Math.floor(random() * 8)}@example.com`,
      to: pick(["ann", "all"]),
    };
    const depends_on = run.steps.length > 0 && random() < 0.2 ? [pick(run.steps)] : [];
    const decision = await s.ask(run.run_id, tool, args as never, depends_on, run.who);
    asked.push({ run_id: run.run_id, tool, args, who: run.who });
    if (decision.decision !== "block") {
      run.steps.push(decision.step);
      open.push({ run_id: run.run_id, step: decision.step, who: run.who });
    } else {
      const id = /request (apr_\S+)/.exec(decision.reasons.join())?.[1];
      if (id !== undefined && random() < 0.6) {
        await s.perform(approveRequest, { approval_id: id }, APPROVER);
        if (random() < 0.8) {
          const second = await s.ask(run.run_id, tool, args as never, depends_on, run.who);
          if (second.decision !== "block") open.push({ run_id: run.run_id, step: second.step, who: run.who });
        }
      }
    }
  }
}

it.each([1, 2, 3, 4, 5, 6])(
  "history %i shows no differences under the policy it was decided by",
  async (seed) => {
    const s = await capturing({ policy: POLICY, environment: "prod", capture: "{enabled: true, ttl: 52w}" });
    await live(s, seed, 500);
    const calls = await s.captured();
    const report = await simulated(s);
    const with_verdict = (wanted: string) => calls.filter(({ verdict }) => verdict === wanted).length;
    expect(with_verdict("allow")).toBeGreaterThan(100);
    expect(with_verdict("block")).toBeGreaterThan(20);
    expect(with_verdict("needs_approval")).toBeGreaterThan(20);
    expect(calls.some(({ approval_used }) => approval_used)).toBe(true);
    expect({ ...report, notes: [] }).toEqual({
      summary: {
        calls: calls.length,
        runs: new Set(calls.map(({ run_id }) => run_id)).size,
        unchanged: calls.length,
        newly_blocked: 0,
        newly_needs_approval: 0,
        newly_allowed: 0,
      },
      changes: [],
      newly_blocked: [],
      newly_needs_approval: [],
      newly_allowed: [],
      notes: [],
    });
  },
);
