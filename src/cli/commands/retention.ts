/** `svc retention plan|apply`: what is due for deletion, and deleting it. */
import { getRetentionPlan, runRetention } from "../../app/operations/retention.ts";
import { openNotifier } from "../../app/wiring/notifier.ts";
import { openSigningKey } from "../../app/wiring/open-app.ts";
import { invalid } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { NOT_ARCHIVED } from "../../retention/apply.ts";
import { ATTENTION, globalOptions, type Register } from "../context.ts";
import type { Door } from "../door.ts";
import { columns, printable } from "../io.ts";

export const registerRetention: Register = (program, context) => {
  const { io } = context;
  const group = program
    .command("retention")
    .description("delete the working data of old runs; the ledger stays");

  globalOptions(
    group.command("plan").description("list each run with its age, how long it is kept, and the decision"),
  )
    .option("--policy <file>", "policy file")
    .option("--days <n>", "days to keep, instead of the policy's")
    .option("--json", "print JSON")
    .action(async (flags: Record<string, string>) => {
      await context.withDoor(
        flags,
        async (door) => {
          const plan = await door.perform(getRetentionPlan, { days: readDays(flags["days"]) });
          if (flags["json"]) return io.out(JSON.stringify(plan));
          if (plan.runs.length === 0) return io.err("no runs");
          const rows = plan.runs.map((run) => [
            printable(run.run_id),
            `${run.age_days} days old`,
            `kept for ${run.keep_days} days`,
            printable(run.decision),
          ]);
          for (const row of columns(rows)) io.out(row);
        },
        ["policy"],
      );
    });

  globalOptions(group.command("apply").description("delete the runs that are due"))
    .option("--policy <file>", "policy file")
    .option("--dry-run", "only say what would be deleted")
    .option("--days <n>", "days to keep, instead of the policy's")
    .option("--archive-dir <dir>", "put a signed bundle of every deleted run here first")
    .option("--key <file>", "private signing key for the archives")
    .option("--as <name>", "who deletes (default: cli)")
    .action(async (flags: Record<string, string>) => {
      await context.withDoor(
        flags,
        async (door) => {
          const report = await apply(door, flags);
          for (const run of report.deleted) io.out(`deleted: ${printable(run)}`);
          for (const run of report.would_delete) io.out(`would delete: ${printable(run)}`);
          for (const { run_id, reason } of report.kept)
            io.out(`kept ${printable(run_id)}: ${printable(reason)}`);
          if (report.deleted.length + report.would_delete.length + report.kept.length === 0)
            io.err("no runs");
          // What was to be deleted and could not be archived stays for ever unless a person looks.
          if (report.kept.some(({ reason }) => reason.startsWith(NOT_ARCHIVED))) context.done(ATTENTION);
        },
        ["policy"],
      );
    });
};

/** A server signs with its own key and tells its people by itself; on local data that is done here. */
async function apply({ perform, local: app }: Door, flags: Record<string, string>) {
  const { key, archiveDir: archive_dir } = flags;
  const input = { dry_run: Boolean(flags["dryRun"]), days: readDays(flags["days"]), archive_dir };
  if (app === null) {
    if (key !== undefined) throw invalid("--key: a server signs with its own key; leave it out");
    return perform(runRetention, input);
  }
  if (key !== undefined) app.signing = openSigningKey(key);
  app.notifier = openNotifier(app);
  try {
    return await perform(runRetention, input);
  } finally {
    await app.notifier.drain(LIMITS.egress_timeout_ms);
  }
}

function readDays(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,4}$/.test(text))
    throw invalid(`--days: ${printable(text)} is not a positive whole number of days`);
  return Number(text);
}
