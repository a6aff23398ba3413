/** Drills inside an application, whose own functions make the example calls, undo them and verify the result. */
import type { ApproversGuard } from "../auth/approvers-guard.ts";
import { guardedCompensator } from "../auth/guarded-undo.ts";
import { beforeAnswerProblem } from "../govern/decide/before-state.ts";
import { observeEffect } from "../govern/decide/effect-check.ts";
import { messageOf } from "../kernel/errors.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import type { ServiceApp } from "../operations/app.ts";
import { assertEnvironment, chooseDrills } from "../operations/drills/drills.ts";
import type { DrillTools } from "../operations/drills/ports.ts";
import { runDrill } from "../operations/drills/run-drill.ts";
import { dispatchOperation } from "../operations/pipeline/dispatch.ts";
import {
  submitIntent as intentOp,
  reportStepOutcome as outcomeOp,
} from "../operations/runs/intents-and-outcomes.ts";
import type { CompensatorFn, ReaderFn, ReadRequest } from "../rollback/ports.ts";
import { readEach } from "../rollback/undo/read-each.ts";
import type { DrillDoc } from "../rules/undo-proof.ts";

/** The example call from a manifest's `drill`. It runs for real, in the environment meant for drills. */
export interface DrillCall {
  run_id: string;
  step: number;
  tool: string;
  args: JsonValue;
}

/** The tools to drill, and the functions of your application that call, undo and read. */
export interface DrillOptions {
  /** Tools to drill. Default: every tool whose manifest declares a drill. */
  tools?: readonly string[];
  /** Limits the drill to tools without a recent proof. */
  due?: boolean;
  /** Name of the person or job that runs the drill, for the ledger. */
  by?: string;
  /** Makes the example call and returns its result. */
  call(call: DrillCall): Promise<JsonValue | undefined> | JsonValue | undefined;
  /** Undoes the call, as in a rollback. */
  compensator: CompensatorFn;
  /** Reads the state after the undo. A drill passes only on this evidence. */
  verifier: ReaderFn;
}

export async function drillWith(
  app: ServiceApp,
  options: DrillOptions,
  guard: ApproversGuard | null = null,
): Promise<DrillDoc[]> {
  assertEnvironment(app);
  const { verifier: reader, by = "library" } = options;
  const compensator = guardedCompensator(
    () => guard,
    async () => undefined,
    options.compensator,
  );
  const make = makingHere(app, options, guard);
  const results: DrillDoc[] = [];
  for (const manifest of await chooseDrills(app, options, () => true))
    results.push(await runDrill(app, manifest, by, { compensator, reader, make }));
  return results;
}

const makingHere =
  (app: ServiceApp, { call, verifier }: DrillOptions, guard: ApproversGuard | null): DrillTools["make"] =>
  async ({ run_id }, principal, tool, args) => {
    const { signal } = new AbortController();
    const caller = { app, principal, signal, drill: true, reads_by: "library" as const };
    const decision = await dispatchOperation(intentOp, caller, {
      run_id,
      tool,
      args,
      reason: `drill of ${tool}`,
    });
    if (decision.decision === "block")
      return { problem: `the call was not allowed: ${decision.reasons.join("; ")}` };
    const { step, before: asked } = decision;
    const read = async (): Promise<JsonValue | undefined> =>
      asked &&
      readEach(
        (one) => verifier(one, signal, run_id),
        { tool: asked.tool, arguments: asked.arguments as JsonValue },
        signal,
      );
    try {
      // An undo that restores earlier state is tested against that state, so read it first.
      const before = await read();
      const problem = asked === undefined || before === undefined ? null : beforeAnswerProblem(asked, before);
      if (problem !== null) throw new Error(`before: ${asked!.tool} could not be read: ${problem}`);
      // No person signs a drill, so the approvers file leaves out the tools that it names.
      const objection = (await guard?.objection({ run_id, tool, args }, async () => undefined)) ?? null;
      if (objection !== null) throw new Error(objection);
      const result = await call({ run_id, step, tool, args });
      const after = await read().catch(() => undefined);
      const { effect_check: check } = decision;
      const once = (one: ReadRequest) => verifier(one, signal, run_id);
      const observed = check && (await observeEffect(app.core.env, once, check, { args, result, before }));
      const told = await dispatchOperation(outcomeOp, caller, {
        run_id,
        step,
        status: "succeeded",
        result,
        before,
        after,
        observed,
      });
      if (told.effect_check === "missing")
        return { problem: `the call reported success, but ${check?.tool} does not show its effect` };
      return { step, result };
    } catch (error) {
      await dispatchOperation(outcomeOp, caller, { run_id, step, status: "failed", error: messageOf(error) });
      return { problem: `the call failed: ${messageOf(error)}` };
    }
  };
