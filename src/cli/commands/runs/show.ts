/** `svc show <run>`: prints a run's events in order. Shows argument values on local data if calls are captured. */

import { actorText } from "../../../govern/roles.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import type { LedgerRecord } from "../../../ledger/record.ts";
import { exportRun } from "../../../operations/evidence/export.ts";
import type { ResponseOf } from "../../../operations/pipeline/operation.ts";
import { capturedCallsOf } from "../../../operations/retention/captures.ts";
import { getRollbackPlan } from "../../../operations/rollback/rollback.ts";
import { getRun } from "../../../operations/runs/runs.ts";
import { EXIT_NEEDS_ATTENTION, globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";
import { documentChunks, type OperationClient } from "../../operation-client.ts";
import { stepLines } from "../../step-lines.ts";
import { terminalWidth, truncateLine } from "../../truncate.ts";

export const registerShow: RegisterCommand = (program, context) => {
  const { io } = context;
  globalOptions(program.command("show <run>").description("Show what a run did, in order"))
    .option("--json", "print JSON")
    .action(async (run_id: string, flags: Record<string, unknown>) => {
      await context.withDoor(flags, async (door) => {
        const run = await door.perform(getRun, { run_id });
        const records = await trailOf(door, run_id);
        const values = await valuesOf(door, run_id);
        const lines = stepLines(run.steps);
        if (flags["json"]) {
          const steps = run.steps.map((step) =>
            values.has(step.step) ? { ...step, args: values.get(step.step) } : step,
          );
          io.out(JSON.stringify({ ...run, steps, records }, null, 2));
        } else {
          for (const line of headOf(run)) io.out(line);
          for (const line of alignColumns(records.map((record) => cells(record, values, lines))))
            io.out(truncateLine(line, terminalWidth(io)));
          const { actions } = await door.perform(getRollbackPlan, { run_id });
          for (const line of next(run, actions)) io.out(line);
        }
        if (run.attention === true) context.done(EXIT_NEEDS_ATTENTION);
      });
    });
};

type ShownRun = ResponseOf<typeof getRun>;

async function trailOf(door: OperationClient, run_id: string): Promise<LedgerRecord[]> {
  let text = "";
  for await (const part of documentChunks(await door.perform(exportRun, { run_id, format: "ndjson" })))
    text += part;
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as LedgerRecord);
}

/** Captured arguments by step. Empty for a server, which does not disclose them. */
async function valuesOf({ local }: OperationClient, run_id: string): Promise<Map<number, JsonValue>> {
  const values = new Map<number, JsonValue>();
  if (local === null) return values;
  for await (const calls of capturedCallsOf(local, run_id))
    for (const { step, args } of calls) if (step !== null) values.set(step, args);
  return values;
}

function headOf(run: ShownRun): string[] {
  const tenant = run.tenant === null ? "" : `, tenant ${escapeControls(run.tenant)}`;
  return [
    `run ${escapeControls(run.run_id)}: ${escapeControls(actorText(run))}${tenant}, ${run.mode}, ${formatCountOf(run.steps.length, "step")}${run.attention === true ? ", needs attention" : ""}`,
    `  opened ${new Date(run.created_ms).toISOString()}${run.reason === null ? "" : `: ${escapeControls(run.reason)}`}`,
    ...(run.parent === undefined ? [] : [`  child of run ${escapeControls(run.parent)}`]),
    ...(run.children === undefined ? [] : [`  child runs: ${run.children.map(escapeControls).join(", ")}`]),
  ];
}

function cells(
  record: LedgerRecord,
  values: ReadonlyMap<number, JsonValue>,
  lines: ReadonlyMap<number, string>,
): string[] {
  const { ts_ms, step, event, tool = "", reason, detail, actor } = record;
  const asked = event === "intended" || event === "blocked" || event === "would_block";
  const args = event === "intended" && step !== undefined ? values.get(step) : undefined;
  const said = asked ? [reason, event === "intended" ? undefined : detail] : [detail];
  return [
    `  ${new Date(ts_ms).toISOString().slice(11, 19)}`,
    step === undefined ? "" : `#${step}`,
    event,
    escapeControls((step === undefined ? undefined : lines.get(step)) ?? tool),
    [
      args === undefined ? "" : escapeControls(JSON.stringify(args)),
      ...said.map((text) => escapeControls(text ?? "")),
      asked ? "" : `by ${escapeControls(actor)}`,
    ]
      .filter((text) => text !== "")
      .join("  "),
  ];
}

/** Suggests the next commands. */
function next({ run_id, unresolved }: ShownRun, actions: readonly { kind: string }[]): string[] {
  const lines = unresolved.map((step) => `outcome unknown: svc resolve ${run_id} ${step}`);
  if (actions.some(({ kind }) => kind === "compensate" || kind === "defer"))
    lines.push(`to undo it: svc plan ${run_id}`);
  return lines;
}
