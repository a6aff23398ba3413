/** `svc show <run>`: what a run did, in order. Values are shown where the data are here and calls are captured. */
import type { AnswerTo } from "../../app/door/operation.ts";
import { exportRun } from "../../app/operations/export.ts";
import { plan } from "../../app/operations/rollback.ts";
import { getRun } from "../../app/operations/runs.ts";
import { capturedPages } from "../../capture/read.ts";
import type { Json } from "../../kernel/json.ts";
import { plural } from "../../kernel/words.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { ATTENTION, globalOptions, type Register } from "../context.ts";
import { type Door, partsOf } from "../door.ts";
import { columnsOf, fitted } from "../fit.ts";
import { columns, printable } from "../io.ts";

export const registerShow: Register = (program, context) => {
  const { io } = context;
  globalOptions(program.command("show <run>").description("tell what a run did, in order"))
    .option("--json", "print JSON")
    .action(async (run_id: string, flags: Record<string, unknown>) => {
      await context.withDoor(flags, async (door) => {
        const run = await door.perform(getRun, { run_id });
        const records = await trailOf(door, run_id);
        const values = await valuesOf(door, run_id);
        if (flags["json"]) {
          const steps = run.steps.map((step) =>
            values.has(step.step) ? { ...step, args: values.get(step.step) } : step,
          );
          io.out(JSON.stringify({ ...run, steps, records }, null, 2));
        } else {
          for (const line of headOf(run)) io.out(line);
          for (const line of columns(records.map((record) => cells(record, values))))
            io.out(fitted(line, columnsOf(io)));
          const { actions } = await door.perform(plan, { run_id });
          for (const line of next(run, actions)) io.out(line);
        }
        if (run.unresolved.length > 0) context.done(ATTENTION);
      });
    });
};

type ShownRun = AnswerTo<typeof getRun>;

async function trailOf(door: Door, run_id: string): Promise<LedgerRecord[]> {
  let text = "";
  for await (const part of partsOf(await door.perform(exportRun, { run_id, format: "ndjson" }))) text += part;
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as LedgerRecord);
}

/** The arguments of each step, as far as they were captured; a server keeps them to itself. */
async function valuesOf({ local }: Door, run_id: string): Promise<Map<number, Json>> {
  const values = new Map<number, Json>();
  if (local === null) return values;
  for await (const calls of capturedPages(local.core.store, { run_id }, local.core.env.now()))
    for (const { step, args } of calls) if (step !== null) values.set(step, args);
  return values;
}

function headOf(run: ShownRun): string[] {
  const tenant = run.tenant === null ? "" : `, tenant ${printable(run.tenant)}`;
  return [
    `run ${printable(run.run_id)}: ${printable(run.actor)}${tenant}, ${run.mode}, ${plural(run.steps.length, "step")}`,
    `  opened ${new Date(run.created_ms).toISOString()}${run.reason === null ? "" : `: ${printable(run.reason)}`}`,
  ];
}

function cells(record: LedgerRecord, values: ReadonlyMap<number, Json>): string[] {
  const { ts_ms, step, event, tool = "", reason, detail, actor } = record;
  const asked = event === "intended" || event === "blocked" || event === "would_block";
  const args = event === "intended" && step !== undefined ? values.get(step) : undefined;
  const said = asked ? [reason, event === "intended" ? undefined : detail] : [detail];
  return [
    `  ${new Date(ts_ms).toISOString().slice(11, 19)}`,
    step === undefined ? "" : `#${step}`,
    event,
    printable(tool),
    [
      args === undefined ? "" : printable(JSON.stringify(args)),
      ...said.map((text) => printable(text ?? "")),
      asked ? "" : `by ${printable(actor)}`,
    ]
      .filter((text) => text !== "")
      .join("  "),
  ];
}

/** What a person could do now, as commands. */
function next({ run_id, unresolved }: ShownRun, actions: readonly { kind: string }[]): string[] {
  const lines = unresolved.map(
    (step) =>
      `outcome unknown: svc resolve ${run_id} ${step} --status succeeded|failed --note <how you know>`,
  );
  if (actions.some(({ kind }) => kind === "compensate" || kind === "defer"))
    lines.push(`to undo it: svc plan ${run_id}`);
  return lines;
}
