/** `svc retention plan|apply`: lists and deletes the working data of old runs. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ContentStore, recordFolder } from "../../../hook/record/content-store.ts";
import { recordedBytes } from "../../../hook/record/record-file.ts";
import { hooksFolder } from "../../../hook/settings.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { getRetentionPlan, runRetention } from "../../../operations/retention/retention.ts";
import { NOT_ARCHIVED } from "../../../retention/apply.ts";
import { openNotifier } from "../../../service/notifier.ts";
import { openSigningKey } from "../../../service/open-app.ts";
import { EXIT_NEEDS_ATTENTION, globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";
import type { OperationClient } from "../../operation-client.ts";

export const registerRetention: RegisterCommand = (program, context) => {
  const { io } = context;
  const group = program.command("retention").description("Delete the working data of old runs");

  globalOptions(group.command("plan").description("List runs with their age and retention decision"))
    .option("--policy <file>", "policy file")
    .option("--days <n>", "days to keep, instead of the policy's")
    .option("--json", "print JSON")
    .action(async (flags: Record<string, string>) => {
      await context.withDoor(
        flags,
        async (door) => {
          const plan = await door.perform(getRetentionPlan, { days: readDays(flags["days"]) });
          const recorded = recordedHere(hooksFolder(io.env));
          const runs = plan.runs.map((run) => {
            const recorded_bytes = recorded.get(run.run_id);
            return recorded_bytes === undefined ? run : { ...run, recorded_bytes };
          });
          if (flags["json"]) return io.out(JSON.stringify({ ...plan, runs }));
          if (runs.length === 0) return io.err("no runs");
          const rows = runs.map((run) => [
            escapeControls(run.run_id),
            `${run.age_days} days old`,
            `kept for ${run.keep_days} days`,
            escapeControls(run.decision),
            "recorded_bytes" in run ? `${run.recorded_bytes} bytes recorded on this machine` : "",
          ]);
          for (const row of alignColumns(rows)) io.out(row.trimEnd());
        },
        ["policy"],
      );
    });

  globalOptions(group.command("apply").description("Delete the runs that are due"))
    .option("--policy <file>", "policy file")
    .option("--dry-run", "show what would be deleted, without deleting it")
    .option("--days <n>", "days to keep, instead of the policy's")
    .option("--archive-dir <dir>", "first write a signed bundle of each run to this directory")
    .option("--key <file>", "private signing key for the archives")
    .option("--as <name>", "who deletes (default: cli)")
    .action(async (flags: Record<string, string>) => {
      await context.withDoor(
        flags,
        async (door) => {
          const report = await apply(door, flags);
          for (const run of report.deleted) io.out(`deleted: ${escapeControls(run)}`);
          for (const run of report.would_delete) io.out(`would delete: ${escapeControls(run)}`);
          for (const { run_id, reason } of report.kept)
            io.out(`kept ${escapeControls(run_id)}: ${escapeControls(reason)}`);
          if (report.deleted.length + report.would_delete.length + report.kept.length === 0)
            io.err("no runs");
          // Retention never deletes a run that cannot be archived, so an operator has to fix this.
          if (report.kept.some(({ reason }) => reason.startsWith(NOT_ARCHIVED)))
            context.done(EXIT_NEEDS_ATTENTION);
        },
        ["policy"],
      );
    });
};

/** Bytes of recorded contents that this machine keeps for each run of a coding agent. */
function recordedHere(folder: string): Map<string, number> {
  const own = recordFolder(folder);
  return existsSync(join(own, "key")) ? recordedBytes(new ContentStore(own, false)) : new Map();
}

/** Deletes due runs. On local data, this process signs the archives and sends the notifications. */
async function apply({ perform, local: app }: OperationClient, flags: Record<string, string>) {
  const { key, archiveDir: archive_dir } = flags;
  const input = { dry_run: Boolean(flags["dryRun"]), days: readDays(flags["days"]), archive_dir };
  if (app === null) {
    if (key !== undefined) throw invalidError("--key: a server signs with its own key; omit it");
    return perform(runRetention, input);
  }
  if (key !== undefined) app.signing = openSigningKey(key);
  app.notifier = openNotifier(app);
  try {
    return await perform(runRetention, input);
  } finally {
    await app.notifier.drain(SERVICE_LIMITS.egress_timeout_ms);
  }
}

function readDays(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,4}$/.test(text))
    throw invalidError(`--days: ${escapeControls(text)} is not a positive whole number of days`);
  return Number(text);
}
