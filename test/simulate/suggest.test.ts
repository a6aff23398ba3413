/** `svc policy suggest`: a draft from captured calls, with its evidence, that blocks no call that went well. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { approveRequest } from "../../src/operations/approvals/approvals.ts";
import { haltCalls, liftHalts } from "../../src/operations/halts.ts";
import { loadPolicy } from "../../src/rules/policy/load.ts";
import type { HistoricCall } from "../../src/simulate/recorded-call.ts";
import { draftPolicy, withHeadroom } from "../../src/simulate/suggest/draft.ts";
import { UsageObservation } from "../../src/simulate/suggest/observe.ts";
import { writeDraft } from "../../src/simulate/suggest/write.ts";
import { openStore } from "../../src/store/open.ts";
import { principal } from "../support/engine.ts";
import { speak } from "../support/io.ts";
import { verifies } from "../support/verifies.ts";
import { type Capturing, capturing, NOON } from "./support.ts";

const POLICY = `version: 1
rules:
  - {id: big, match: {tool: pay.charge}, when: [{path: $args.amount, op: gt, value: 50}], action: require_approval}
  - {id: huge, match: {tool: pay.charge}, when: [{path: $args.amount, op: gt, value: 900}], action: deny}
`;
const ANN = principal("ann", "approver");
const ADMIN = principal("root", "admin");
const OTHER = principal("other-bot");
/** Calls while a halt was in force: history refused them, and a simulation lets them through. */
const HALTED = 12;

let s: Capturing;
beforeAll(async () => {
  s = await capturing({ policy: POLICY, durable: true });
  await s.open("run-1");
  for (const n of [1, 2, 3]) {
    const args = { amount: 60 + n };
    const asked = await s.ask("run-1", "pay.charge", args);
    const [approval_id] = /apr_[0-9a-f-]+/.exec(JSON.stringify(asked))!;
    await s.perform(approveRequest, { approval_id, note: "fine" }, ANN);
    await s.call("run-1", "pay.charge", args, { id: n });
  }
  await s.ask("run-1", "pay.charge", { amount: 1_000 });
  for (const to of ["a", "b"]) await s.call("run-1", "mail.send", { to });
  await s.open("run-2", "enforce", OTHER);
  await s.perform(haltCalls, { reason: "a look around", tool: "crm.get" }, ADMIN);
  for (let n = 0; n < HALTED; n++) await s.ask("run-2", "crm.get", { n }, [], OTHER);
  await s.perform(liftHalts, {}, ADMIN);
  const last = await s.ask("run-2", "crm.get", { n: HALTED }, [], OTHER);
  await s.done("run-2", (last as { step: number }).step, { status: "succeeded" }, OTHER);
  await s.close();
});

const PAST: HistoricCall = {
  run_id: "r",
  step: 0,
  tool: "crm.get",
  actor: "",
  tenant: null,
  environment: null,
  args: {},
  result: null,
  has_result: false,
  decision: "allow",
  reasons: [],
  outcome: "succeeded",
  manifest_version: null,
  risk_score: 0,
  captured_ms: NOON,
  expires_ms: NOON + 1,
  redacted: false,
  verdict: "allow",
  depends_on: [],
  mode: "enforce",
  approval_used: false,
  finished_ms: null,
  logical_call: null,
};

const svc = (...args: string[]) =>
  speak(args, { cwd: s.folder, clock: s.env, env: { SVC_LOG_LEVEL: "error" } });

describe("svc policy suggest", () => {
  it("drafts limits, budgets, rules, permissions and grants, each with its evidence", async () => {
    verifies("beyond.suggest.draft", "beyond.suggest.evidence", "beyond.suggest.permissions");
    const { code, out, err } = await svc("policy", "suggest");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^# DRAFT by svc policy suggest/);
    const draft = parse(out);
    expect(draft.rules.map(({ id }: { id: string }) => id)).toEqual([
      "big",
      "huge",
      "irreversible-mail.send",
    ]);
    expect(draft.limits).toContainEqual({
      id: "calls-bot-pay.charge",
      match: { tool: "pay.charge", actor: "bot" },
      max: 9,
      per: "actor",
      window: "1h",
    });
    expect(draft.budgets).toMatchObject([{ path: "$args.amount", max: 280, match: { actor: "bot" } }]);
    expect(out).toContain("# 3 calls in 1 run (run-1); at most 186 in 1d, 63 in one call\n  - id: sum-bot-");
    expect(out).toContain("# declared irreversible; 2 calls in 1 run (run-1), 0 approved\n  - id: irrev");
    expect(out).toContain("#   bot: mail.send, pay (5 calls of 2 tools in 1 run (run-1))");
    expect(out).toContain("#     requested by its runs and never used: crm.read, crm.write\n");
    expect(out).toContain("all 3 requests that rule big made were approved, in 1 run (run-1)");
    expect(out).toContain(
      "svc grants add --tool 'pay.charge' --actor 'bot' --rule 'big' --when '$args.amount lte 63' --max-uses 3 ",
    );
  });

  it("what it prints passes the check, and blocks nothing of the history that ran well", async () => {
    verifies("beyond.suggest.simulated", "beyond.suggest.checks");
    const { out } = await svc("policy", "suggest", "--since", "1d");
    expect(out).toContain("nothing that ran well is newly blocked.");
    // The limit that could not hold because of the halt is reported, and not drafted.
    expect(out).toContain(
      "left out, because it would have blocked: calls-other-bot-crm.get (1 call in 1 run",
    );
    expect(parse(out).limits.map(({ id }: { id: string }) => id)).not.toContain("calls-other-bot-crm.get");
    writeFileSync(join(s.folder, "draft.yaml"), out);
    expect(await svc("policy", "check", "draft.yaml")).toMatchObject({
      code: 0,
      out: "ok: 3 rules, 0 tests\n",
    });
    const simulated = await svc("simulate", "--policy", "draft.yaml", "--json");
    expect(simulated.code).toBe(0);
    expect(JSON.parse(simulated.out).summary).toMatchObject({ newly_blocked: 0, newly_needs_approval: 2 });
  });

  it("is about one agent if named, and an empty history is an error that explains why", async () => {
    verifies("beyond.suggest.actor", "beyond.suggest.empty");
    const { out } = await svc("policy", "suggest", "--actor", "bot");
    expect(out).not.toContain("other-bot");
    expect(parse(out).rules.at(-1).match).toEqual({ tool: "mail.send", actor: "bot" });
    const wrong = await svc("policy", "suggest", "--actor", "othr-bot");
    expect(wrong).toMatchObject({ code: 1, out: "" });
    expect(wrong.err).toContain('nothing to draft from: no call of "othr-bot" was captured since ');
    expect(wrong.err).toContain('did you mean "other-bot"?');
    const elsewhere = { store: "files", data: join(s.folder, "elsewhere"), database_url: null } as const;
    await (await openStore({ ...elsewhere, warn: () => {} })).close();
    const none = await svc("policy", "suggest", "-d", "elsewhere");
    expect(none).toMatchObject({ code: 1, out: "" });
    expect(none.err).toContain("nothing to draft from: no call was captured since ");
    expect((await svc("policy", "suggest", "--since", "soon")).err).toContain('--since: "soon" is neither');
  });

  it("names that agents chose stay inside their comments and match nothing else", () => {
    const { manifests } = s.app.core.rules();
    const observed = new UsageObservation();
    for (const actor of ["a\nrules: []", "b'; rm -rf ~; '", "c*"]) observed.add({ ...PAST, actor });
    const around = { manifests, active: { version: 1 as const }, granted: new Map(), asked: [], actor: null };
    const text = writeDraft({ version: 1 }, draftPolicy(observed, around), []);
    const doc = loadPolicy(text, "draft.yaml");
    expect(doc.limits?.map(({ match }) => match?.actor)).toEqual(["a\nrules: []", "b'; rm -rf ~; '"]);
  });
});

it("room is half as much again, in two digits", () => {
  expect([1, 6, 187.5, 0.3, 99_999].map(withHeadroom)).toEqual([1.5, 9, 290, 0.45, 150_000]);
});
