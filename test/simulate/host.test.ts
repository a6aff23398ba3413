/** The thread's limits: the cost of a hostile policy, and that the process around it does not notice. */
import { describe, expect, it } from "vitest";
import { JOB_LIMITS, SandboxHost } from "../../src/operations/worker/host.ts";
import type { SandboxJob } from "../../src/operations/worker/job.ts";
import { readManifests } from "../../src/rules/manifest/load.ts";
import type { HistoricCall } from "../../src/simulate/recorded-call.ts";
import type { SimulationReport } from "../../src/simulate/simulate.ts";
import { seeded } from "../support/env.ts";
import { NOON } from "./support.ts";

const manifests = readManifests([{ file: "m", text: "- {tool: t, effect: read, permission: p}" }]).all;
const never = new AbortController().signal;

function job(policy: string | null, task: SandboxJob["task"] = { kind: "simulate" }): SandboxJob {
  const given = policy === null ? null : { text: policy, file: "policy" };
  const common = { now_ms: NOON, environment: null, storeKey: "k" };
  return { task, manifests, active: { version: 1 }, policy: given, ...common };
}

function past(n: number, args: HistoricCall["args"] = { n }): HistoricCall {
  return {
    run_id: `run-${Math.floor(n / 100)}`,
    step: n % 100,
    tool: "t",
    actor: "bot",
    tenant: null,
    environment: null,
    args,
    result: null,
    has_result: false,
    decision: "allow",
    reasons: [],
    outcome: "succeeded",
    manifest_version: "1",
    risk_score: 0,
    captured_ms: NOON - 1_000_000 + n,
    expires_ms: NOON + 1,
    redacted: false,
    verdict: "allow",
    depends_on: [],
    mode: "enforce",
    approval_used: false,
    finished_ms: NOON - 1_000_000 + n,
    logical_call: null,
  };
}

async function* pages(n: number, make = past): AsyncGenerator<HistoricCall[]> {
  for (let i = 0; i < n; i += 200) yield Array.from({ length: Math.min(200, n - i) }, (_, k) => make(i + k));
}

/** Patterns as heavy as a policy may hold, on texts that suit them. */
const HEAVY = `version: 1\nrules:\n${Array.from(
  { length: 60 },
  (_, i) =>
    `  - {id: r${i}, action: deny, when: [{path: $args.text, op: matches, value: "a[ab]{${800 + i}}[cd]"}]}`,
).join("\n")}\n`;
const random = seeded(5);
const tangled = () => Array.from({ length: 6_000 }, () => (random() < 0.5 ? "a" : "b")).join("");

describe("a policy that takes too long", () => {
  it("is stopped, and the next job runs", async () => {
    const host = new SandboxHost({ ...JOB_LIMITS, step_ms: 2_000, total_ms: 8_000 });
    const heavy = host.run(
      job(HEAVY),
      pages(2_000, (n) => past(n, { text: tangled() })),
      never,
    );
    expect(await heavy.catch((error) => [error.code, error.message])).toEqual([
      "invalid",
      expect.stringContaining("took too much time"),
    ]);
    const report = JSON.parse(await host.run(job(null), pages(10), never)) as SimulationReport;
    expect(report.summary.calls).toBe(10);
  });

  it("is stopped where its own tests would never end", async () => {
    const host = new SandboxHost({ ...JOB_LIMITS, step_ms: 2_000 });
    const text = `version: 1\nlimits: [{id: l, max: 1, per: run, window: 1h}]\ntests:\n${Array.from(
      { length: 5_000 },
      (_, i) => `  - {name: t${i}, input: {tool: t, repeat: 1000}, expect: deny}\n`,
    ).join("")}`;
    const endless = { read: "checked_policy", text, active: null, labels: [], now_ms: 0 } as const;
    await expect(host.run(endless, pages(0), never)).rejects.toThrow("took too much time");
  });

  it("is stopped in its sum as well", async () => {
    const host = new SandboxHost({ ...JOB_LIMITS, step_ms: 30_000, total_ms: 2_000 });
    const endless = async function* () {
      for (let n = 0; ; n += 200) yield Array.from({ length: 200 }, (_, k) => past(n + k));
    };
    await expect(host.run(job(null), endless(), never)).rejects.toThrow("took too much time");
  });

  it("cannot take all memory", async () => {
    const host = new SandboxHost({ ...JOB_LIMITS, heap_mb: 16 });
    const plans = [
      { name: "p", calls: Array.from({ length: 40_000 }, (_, n) => ({ tool: "t", args: { n } })) },
    ];
    const task = { kind: "speculate", plans, actor: "a" } as const;
    await expect(host.run(job(null, task), pages(0), never)).rejects.toThrow("took too much memory");
  });
});

describe("history", () => {
  it("is read as the thread asks for it, a page ahead at most", async () => {
    let given = 0;
    let open = 0;
    let most = 0;
    const watched = async function* () {
      for await (const page of pages(8_000)) {
        given += page.length;
        most = Math.max(most, ++open);
        yield page;
        open--;
      }
    };
    const text = await new SandboxHost().run(
      job("version: 1\nlimits: [{id: l, max: 50, per: run, window: 1h}]"),
      watched(),
      never,
    );
    const report = JSON.parse(text) as SimulationReport;
    expect(report.summary).toMatchObject({
      calls: 8_000,
      runs: 80,
      newly_blocked: 4_000,
      unchanged: 4_000,
    });
    expect([given, most]).toEqual([8_000, 1]);
    expect(report.newly_blocked).toHaveLength(1_000);
    expect(report.notes).toEqual(["newly_blocked lists the first 1000 of 4000 calls"]);
    expect(report.changes).toEqual([
      expect.objectContaining({ by: ["limit l"], calls: 4_000, runs: 80, run_ids: expect.any(Array) }),
    ]);
  });

  it("that cannot be read fails the job, and an abort ends it", async () => {
    const host = new SandboxHost();
    // biome-ignore lint/correctness/useYield: it fails before it has anything to give
    const broken = async function* (): AsyncGenerator<HistoricCall[]> {
      throw new Error("the disk is gone");
    };
    await expect(host.run(job(null), broken(), never)).rejects.toThrow("the disk is gone");
    const stop = new AbortController();
    const waiting = async function* () {
      stop.abort();
      yield* pages(100_000);
    };
    await expect(host.run(job(null), waiting(), stop.signal)).rejects.toThrow("was stopped");
    await expect(host.run(job(null), pages(1), AbortSignal.abort())).rejects.toThrow();
  });
});

it("more jobs than it can take wait, and beyond that are refused", async () => {
  const host = new SandboxHost();
  const jobs = Array.from({ length: 19 }, () =>
    host.run(job(null), pages(1), new AbortController().signal).then(
      () => "ok",
      (error) => error.code,
    ),
  );
  const answers = await Promise.all(jobs);
  expect(answers.filter((answer) => answer === "ok")).toHaveLength(18);
  expect(answers.filter((answer) => answer === "too_many")).toHaveLength(1);
});
