/** A service that captures, driven through its operations, for the tests of capture and of the sandbox. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll } from "vitest";
import type { z } from "zod";
import { capturedPages } from "../../src/capture/captured-calls.ts";
import { loadSettings } from "../../src/config/load.ts";
import type { IntentDecision } from "../../src/govern/decide/verdict.ts";
import type { StateStore } from "../../src/govern/port/store.ts";
import type { CallerPrincipal } from "../../src/govern/roles.ts";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import { dispatchOperation } from "../../src/operations/pipeline/dispatch.ts";
import type { ServiceOperation } from "../../src/operations/pipeline/operation.ts";
import { reportStepOutcome, submitIntent } from "../../src/operations/runs/intents-and-outcomes.ts";
import { openRun } from "../../src/operations/runs/runs.ts";
import { doJob } from "../../src/operations/worker/execute.ts";
import type { SandboxJob, SandboxTask } from "../../src/operations/worker/job.ts";
import { openService, type RunningService } from "../../src/service/service.ts";
import type { ReplayChange } from "../../src/simulate/changes.ts";
import type { HistoricCall } from "../../src/simulate/recorded-call.ts";
import type { ReplayReport } from "../../src/simulate/replay.ts";
import type { SimulationReport } from "../../src/simulate/simulate.ts";
import type { SpeculationReport, SpeculativePlan } from "../../src/simulate/speculate.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { lineSink } from "../../src/telemetry/sink.ts";
import { principal } from "../support/engine.ts";
import { type FakeEnv, fakeEnv } from "../support/env.ts";
import { tempDir } from "../support/tmp.ts";

export const NOON = Date.parse("2026-06-15T12:00:00Z");

export const MANIFESTS = `
- {tool: crm.get, effect: read, permission: crm.read, owner: sales, risk: {data_class: pii, blast_radius: none}}
- {tool: crm.open, effect: idempotent, permission: crm.write}
- tool: crm.create
  version: "1.2.0"
  effect: compensable
  permission: crm.write
  owner: sales
  requires: [crm.open]
  idempotency: $args.email
  risk: {data_class: pii, blast_radius: single}
  compensation: {tool: crm.delete, args: {id: $result.id}, kind: inverse, residue: [a welcome mail was sent]}
  verification: {tool: crm.get, args: {id: $result.id}, expect: {deleted: true}}
  audit: {redaction: [$args.email, $result.token]}
- tool: pay.charge
  effect: compensable
  permission: pay
  risk: {data_class: financial, blast_radius: external}
  compensation: {tool: pay.refund, args: {id: $result.id, amount: $args.amount}, requires_approval: true}
- {tool: mail.send, effect: irreversible, permission: mail.send, risk: {blast_radius: external}}
- {tool: old.tool, effect: read, permission: crm.read, lifecycle: deprecated}
- {tool: new.tool, effect: read, permission: crm.read, lifecycle: draft}
`;

/** Tools whose undo restores the state before the call; the undo of one names none of it. */
export const RESTORED = `
- {tool: doc.read, effect: read, permission: doc}
- tool: doc.write
  effect: reversible
  permission: doc
  before: {tool: doc.read, args: {id: $args.id}, absent: {found: false}}
  compensation: {tool: doc.restore, args: {id: $args.id, text: $before.text}, when_absent: {tool: doc.delete, args: {id: $args.id}}}
  verification: {tool: doc.read, args: {id: $args.id}, expect: {text: $before.text}}
- tool: doc.touch
  effect: reversible
  permission: doc
  before: {tool: doc.read, args: {id: $args.id}}
  compensation: {tool: doc.untouch, args: {id: $args.id}}
`;

export interface CapturingOptions {
  policy?: string;
  manifests?: string;
  /** Keys of the capture section; on with the defaults unless given. */
  capture?: string;
  store?: StateStore;
  /** On a files store in the folder, for commands to read afterwards. */
  durable?: boolean;
  environment?: string;
}

type Done = Omit<z.input<typeof reportStepOutcome.input>, "run_id" | "step">;

export interface Capturing {
  app: RunningService;
  env: FakeEnv;
  folder: string;
  logged: string[];
  open(run_id: string, mode?: "enforce" | "observe" | "advise", who?: CallerPrincipal): Promise<void>;
  ask(
    run_id: string,
    tool: string,
    args: JsonValue,
    depends_on?: number[],
    who?: CallerPrincipal,
  ): Promise<IntentDecision>;
  done(run_id: string, step: number, body?: Done, who?: CallerPrincipal): Promise<void>;
  /** Asks and reports success; answers the step. */
  call(run_id: string, tool: string, args: JsonValue, result?: JsonValue): Promise<number>;
  perform<I extends z.ZodType, O>(
    op: ServiceOperation<I, O>,
    input: z.input<I>,
    who?: CallerPrincipal,
  ): Promise<O>;
  close(): Promise<void>;
  /** Everything captured, in its order, after all of it was written. */
  captured(): Promise<HistoricCall[]>;
}

export const AGENT = principal("bot");

export async function capturing(options: CapturingOptions = {}): Promise<Capturing> {
  const folder = tempDir("capture");
  writeFileSync(join(folder, "manifests.yaml"), options.manifests ?? MANIFESTS);
  writeFileSync(join(folder, "policy.yaml"), options.policy ?? "version: 1\n");
  const capture = options.capture ?? "{enabled: true}";
  const environment = options.environment === undefined ? "" : `environment: ${options.environment}\n`;
  writeFileSync(
    join(folder, "svc.config.yaml"),
    `manifests: manifests.yaml\npolicy: policy.yaml\ndata: data\nstore: files\ncapture: ${capture}\n${environment}`,
  );
  const settings = loadSettings({ flags: {}, env: {}, cwd: folder });
  const env = fakeEnv({ now: NOON, seed: 11 });
  const logged: string[] = [];
  const log = createLogger(settings.log, {
    redact: (text) => text,
    sink: lineSink((line) => void logged.push(line)),
  });
  const store = options.store ?? (options.durable ? undefined : new MemoryStore());
  const app = await openService(settings, env, { log, ...(store === undefined ? {} : { store }) });
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= app.close();
    return closed;
  };
  afterAll(close);
  const performIt = <I extends z.ZodType, O>(op: ServiceOperation<I, O>, input: z.input<I>, who = AGENT) =>
    dispatchOperation(op, { app, principal: who, signal: new AbortController().signal }, input);
  const permissions = () => app.core.rules().manifests.permissions;
  const ask: Capturing["ask"] = (run_id, tool, args, depends_on = [], who = AGENT) =>
    performIt(submitIntent, { run_id, tool, args, reason: "because", depends_on }, who);
  const done: Capturing["done"] = async (run_id, step, body = { status: "succeeded" }, who = AGENT) => {
    await performIt(reportStepOutcome, { run_id, step, ...body }, who);
  };
  return {
    app,
    env,
    folder,
    logged,
    ask,
    done,
    perform: performIt,
    close,
    async open(run_id, mode = "enforce", who = AGENT) {
      await performIt(openRun, { run_id, mode, permissions: [...permissions()] }, who);
    },
    async call(run_id, tool, args, result) {
      const decision = await ask(run_id, tool, args);
      if (decision.decision === "block")
        throw new Error(`${tool} was blocked: ${decision.reasons.join("; ")}`);
      await done(run_id, decision.step, { status: "succeeded", ...(result === undefined ? {} : { result }) });
      return decision.step;
    },
    async captured() {
      await app.capture?.drain(5_000);
      const calls: HistoricCall[] = [];
      for await (const page of capturedPages(app.core.store, {}, env.now())) calls.push(...page);
      return calls;
    },
  };
}

/** The store's whole ledger and every document but captures, as text: what a sandbox must not change. */
export async function everythingOf(store: StateStore): Promise<string> {
  const { TABLE_NAMES } = await import("../../src/govern/port/tables.ts");
  const parts: unknown[] = [await store.head(), await store.records({ limit: 1_000_000 })];
  for (const table of TABLE_NAMES) {
    if (table !== "captures") parts.push([table, await store.list(table, { limit: 1_000_000 })]);
  }
  return JSON.stringify(parts);
}

/** A job on the service's rules and history, done in this thread. */
export async function inSandbox<T>(s: Capturing, task: SandboxTask, policy?: string): Promise<T> {
  const { core } = s.app;
  const { manifests, policy: active } = core.rules();
  const job: SandboxJob = {
    task,
    manifests: manifests.all,
    active: active.doc,
    policy: policy === undefined ? null : { text: policy, file: "policy" },
    now_ms: s.env.now(),
    environment: core.environment,
    storeKey: core.storeKey,
  };
  await s.app.capture?.drain(5_000);
  const query = task.kind === "replay" ? { run_id: task.run_id } : {};
  return (await doJob(job, capturedPages(core.store, query, s.env.now()))) as T;
}

export const simulated = (s: Capturing, policy?: string) =>
  inSandbox<SimulationReport>(s, { kind: "simulate" }, policy);

export const replayed = (s: Capturing, run_id: string, changes: Partial<ReplayChange>[], policy?: string) =>
  inSandbox<ReplayReport>(
    s,
    {
      kind: "replay",
      run_id,
      changes: changes.map((one) => ({ step: null, tool: null, path: "", value: null, ...one })),
    },
    policy,
  );

export const speculated = (s: Capturing, plans: SpeculativePlan[], policy?: string) =>
  inSandbox<SpeculationReport>(s, { kind: "speculate", plans, actor: "bot" }, policy);
