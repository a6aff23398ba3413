/** The service inside the caller's own process: same engine, same ledger, no server. */

import type { z } from "zod";
import type { App } from "../app/app.ts";
import { openLocalApp } from "../app/local.ts";
import type { Operation } from "../app/operation.ts";
import { intent as intentOp, outcome as outcomeOp } from "../app/operations/journal.ts";
import { openRun as openRunOp } from "../app/operations/runs.ts";
import { perform } from "../app/perform.ts";
import { loadSettings } from "../config/load.ts";
import { systemEnv } from "../kernel/env.ts";
import { assertJson } from "../kernel/json.ts";
import type { DrillDoc } from "../model/proof.ts";
import type { Principal } from "../model/roles.ts";
import type { Mode } from "../model/run.ts";
import { executeRollback } from "../rollback/execute.ts";
import { loadPlan } from "../rollback/load.ts";
import { type DrillOptions, drillWith } from "./drill.ts";
import { Run } from "./run.ts";

export interface OpenOptions {
  manifests?: string;
  policy?: string;
  store?: "files" | "sqlite" | "postgres";
  data?: string;
  database_url?: string;
  environment?: string;
  /** A svc.config.yaml; the other options come before it. */
  config?: string;
}

export interface RunOptions {
  actor: string;
  permissions: readonly string[];
  run_id?: string;
  mode?: Mode;
  reason?: string;
  tenant?: string;
}

export interface Svc {
  run(options: RunOptions): Promise<Run>;
  /** Proves undos with the functions given here, in an environment under `drills.environments`. */
  drill(options: DrillOptions): Promise<DrillDoc[]>;
  close(): Promise<void>;
}

export async function open(options: OpenOptions = {}): Promise<Svc> {
  const { database_url, ...rest } = options;
  const flags = { ...rest, ...(database_url === undefined ? {} : { "database-url": database_url }) };
  const settings = loadSettings({ flags, env: process.env, cwd: process.cwd() });
  const app = await openLocalApp(settings, systemEnv);
  return {
    run: (run) => openRun(app, run),
    drill: (options) => drillWith(app, options),
    close: () => app.close(),
  };
}

async function openRun(app: App, options: RunOptions): Promise<Run> {
  const { actor, tenant, ...body } = options;
  const principal: Principal = {
    id: `library:${actor}`,
    name: actor,
    roles: ["agent"],
    groups: [],
    tenant: tenant ?? null,
    max_permissions: ["*"],
    allow_observe: true,
  };
  const caller = { app, principal, signal: new AbortController().signal };
  const call = async <I extends z.ZodType, O>(op: Operation<I, O>, input: z.input<I>): Promise<O> => {
    assertJson(input, "input");
    return perform(op, caller, input);
  };
  const { run_id, scope_seal } = await call(openRunOp, { ...body, permissions: [...body.permissions] });
  return new Run(run_id, scope_seal, {
    intent: ({ depends_on, ...intent }) =>
      call(intentOp, {
        run_id,
        ...intent,
        ...(depends_on === undefined ? {} : { depends_on: [...depends_on] }),
      }),
    outcome: (step, outcome) => call(outcomeOp, { run_id, step, ...outcome }),
    plan: () => loadPlan(app.core.store, run_id),
    rollback: ({ verifier, ...request }) =>
      executeRollback(app.core, run_id, { ...request, actor, reader: verifier ?? null }),
  });
}
