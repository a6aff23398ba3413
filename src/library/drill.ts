/** Drills inside an application: its own functions make the example calls, undo them and read back. */
import type { App } from "../app/app.ts";
import { perform } from "../app/door/perform.ts";
import type { DrillTools } from "../app/operations/drills/ports.ts";
import { runDrill } from "../app/operations/drills/run-drill.ts";
import { assertEnvironment, chosen } from "../app/operations/drills.ts";
import { intent as intentOp, outcome as outcomeOp } from "../app/operations/journal.ts";
import { answerProblem } from "../engine/before.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import type { DrillDoc } from "../model/proof.ts";
import type { Compensator, Reader } from "../rollback/ports.ts";
import { readEach } from "../rollback/read-each.ts";

/** The example call of a manifest's `drill`, to be made for real in a place made for it. */
export interface DrillCall {
  run_id: string;
  step: number;
  tool: string;
  args: Json;
}

/** What is drilled, and the application's own functions that make the call, undo it and look. */
export interface DrillOptions {
  /** Without them every tool whose manifest declares a drill. */
  tools?: readonly string[];
  /** Only those without a fresh proof. */
  due?: boolean;
  /** Who drills, on the ledger. */
  by?: string;
  /** Makes the example call, and answers its result. */
  call(call: DrillCall): Promise<Json | undefined> | Json | undefined;
  /** Undoes it, as in a rollback. */
  compensator: Compensator;
  /** Reads back what the undo left: only that is believed. */
  verifier: Reader;
}

export async function drillWith(app: App, options: DrillOptions): Promise<DrillDoc[]> {
  assertEnvironment(app);
  const { compensator, verifier: reader, by = "library" } = options;
  const results: DrillDoc[] = [];
  for (const manifest of await chosen(app, options, () => true))
    results.push(await runDrill(app, manifest, by, { compensator, reader, make: makingHere(app, options) }));
  return results;
}

const makingHere =
  (app: App, { call, verifier }: DrillOptions): DrillTools["make"] =>
  async ({ run_id }, principal, tool, args) => {
    const { signal } = new AbortController();
    const caller = { app, principal, signal, drill: true, reads_by: "library" as const };
    const decision = await perform(intentOp, caller, { run_id, tool, args, reason: `drill of ${tool}` });
    if (decision.decision === "block")
      return { problem: `the call was not allowed: ${decision.reasons.join("; ")}` };
    const { step, before: asked } = decision;
    const read = async (): Promise<Json | undefined> =>
      asked &&
      readEach(
        (one) => verifier(one, signal, run_id),
        { tool: asked.tool, arguments: asked.arguments as Json },
        signal,
      );
    try {
      // An undo that puts back what was there is proven on what was there.
      const before = await read();
      const problem = asked === undefined || before === undefined ? null : answerProblem(asked, before);
      if (problem !== null) throw new Error(`before: ${asked!.tool} could not be read: ${problem}`);
      const result = await call({ run_id, step, tool, args });
      const after = await read().catch(() => undefined);
      await perform(outcomeOp, caller, { run_id, step, status: "succeeded", result, before, after });
      return { step, result };
    } catch (error) {
      await perform(outcomeOp, caller, { run_id, step, status: "failed", error: messageOf(error) });
      return { problem: `the call failed: ${messageOf(error)}` };
    }
  };
