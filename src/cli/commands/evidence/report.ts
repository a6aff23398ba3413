/** `svc report <run>` and `svc report --since <period>`: reports on one run or on a period. */
import { PERIOD_FORMATS } from "../../../evidence/report/period/period-formats.ts";
import { invalidError } from "../../../kernel/errors.ts";
import {
  DEFAULT_PERIOD,
  periodReport,
  runReport,
  runReportAsPdf,
} from "../../../operations/evidence/reports.ts";
import {
  type CommandContext,
  type CommandFlags,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { escapeControls } from "../../io.ts";
import { printOrWrite } from "../../print-or-write.ts";
import { requireDataFolder } from "./verify.ts";

type ReportFlags = CommandFlags & { since?: string; format?: string; out?: string; policy?: string };

export const registerReport: RegisterCommand = (program, context) => {
  globalOptions(program.command("report [run]").description("Report on a run or a period"))
    .option("--since <period>", `report on a period: a duration such as ${DEFAULT_PERIOD}, or a date`)
    .option("--format <format>", "format of a period's report: md, html, json or pdf (default: md)")
    .option("--out <file>", "write to this file; .html or .pdf sets the format of a run's report")
    .option("--policy <file>", "policy file, for budgets near their limit")
    .action(async (run: string | undefined, flags: ReportFlags) => {
      if (run !== undefined && flags.since !== undefined)
        throw invalidError("pass a run or --since, not both");
      if (run === undefined && flags.since === undefined)
        throw invalidError("nothing to report on: pass a run, or a period with --since");
      if (!context.isRemote(flags)) await requireDataFolder(context, flags);
      await (run === undefined ? period(context, flags) : oneRun(context, run, flags));
    });
};

const RUN_FORMATS = { html: runReport, pdf: runReportAsPdf } as const;

async function oneRun(context: CommandContext, run: string, flags: ReportFlags): Promise<void> {
  const { io } = context;
  if (flags.format !== undefined)
    throw invalidError(
      "--format: only for a period; for a run, name an --out file that ends in .html or .pdf",
    );
  const kind = flags.out === undefined ? "html" : endingOf(flags.out, Object.keys(RUN_FORMATS));
  await context.withDoor(flags, async (door) => {
    const report = await door.perform(RUN_FORMATS[kind as keyof typeof RUN_FORMATS], { run_id: run });
    await printOrWrite(io, report, flags.out);
    if (report.problem !== undefined) {
      io.err(
        `the trail of the run does not verify: ${escapeControls(report.problem)}; the report includes this`,
      );
      context.done(1);
    }
  });
}

/** Returns the format of the file's extension. Throws for an unknown one, since a mislabelled file would mislead. */
function endingOf(file: string, kinds: readonly string[]): string {
  const ending = kinds.find((kind) => file.toLowerCase().endsWith(`.${kind}`));
  if (ending !== undefined) return ending;
  const names = kinds.map((kind) => `.${kind}`);
  throw invalidError(`--out: name a file that ends in ${names.slice(0, -1).join(", ")} or ${names.at(-1)}`);
}

async function period(context: CommandContext, flags: ReportFlags): Promise<void> {
  const { io } = context;
  const format = formatOf(flags);
  if (format === "pdf" && flags.out === undefined)
    throw invalidError("--out: required for a PDF; name a file that ends in .pdf");
  const report = await context.withDoor(
    flags,
    (door) => door.perform(periodReport, { since: flags.since, format }),
    ["policy"],
  );
  await printOrWrite(io, report, flags.out);
}

const FORMATS = [...PERIOD_FORMATS, "pdf"] as const;

/** Returns `--format`, else the format of the file's extension, else Markdown. Throws if the first two differ. */
function formatOf({ format, out }: ReportFlags): (typeof FORMATS)[number] {
  const asked = format === undefined ? undefined : FORMATS.find((one) => one === format);
  if (format !== undefined && asked === undefined)
    throw invalidError(`--format: must be one of ${FORMATS.join(", ")}, not ${JSON.stringify(format)}`);
  if (out === undefined || !/\.[^./\\]+$/.test(out)) return asked ?? "md";
  const named = endingOf(out, FORMATS) as (typeof FORMATS)[number];
  if (asked !== undefined && asked !== named)
    throw invalidError(
      `--out: ends in .${named}, but the format is ${asked}; name a file that ends in .${asked}`,
    );
  return named;
}
