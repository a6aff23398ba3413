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
    .option(
      "--format <format>",
      "of a run html or pdf; of a period md, html, json or pdf (default: the first)",
    )
    .option("--out <file>", "write to this file; its extension sets the format")
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

const RUN_REPORTS = { html: runReport, pdf: runReportAsPdf } as const;
type RunFormat = keyof typeof RUN_REPORTS;
const RUN_FORMATS = Object.keys(RUN_REPORTS) as RunFormat[];
const PERIOD_REPORTS = [...PERIOD_FORMATS, "pdf"] as const;

async function oneRun(context: CommandContext, run: string, flags: ReportFlags): Promise<void> {
  const { io } = context;
  const format = formatOf(flags, RUN_FORMATS, "html");
  await context.withDoor(flags, async (door) => {
    const report = await door.perform(RUN_REPORTS[format], { run_id: run });
    await printOrWrite(io, report, flags.out);
    if (report.problem !== undefined) {
      io.err(
        `the trail of the run does not verify: ${escapeControls(report.problem)}; the report includes this`,
      );
      context.done(1);
    }
  });
}

async function period(context: CommandContext, flags: ReportFlags): Promise<void> {
  const format = formatOf(flags, PERIOD_REPORTS, "md");
  const report = await context.withDoor(
    flags,
    (door) => door.perform(periodReport, { since: flags.since, format }),
    ["policy"],
  );
  await printOrWrite(context.io, report, flags.out);
}

/**
 * Returns `--format`, else the format of the file's extension, else the default. Throws if the first two differ, since a
 * mislabelled file would mislead.
 */
function formatOf<F extends string>({ format, out }: ReportFlags, formats: readonly F[], fallback: F): F {
  const asked = format === undefined ? undefined : formats.find((one) => one === format);
  if (format !== undefined && asked === undefined)
    throw invalidError(`--format: must be one of ${formats.join(", ")}, not ${JSON.stringify(format)}`);
  if (asked === "pdf" && out === undefined)
    throw invalidError("--out: required for a PDF; name a file that ends in .pdf");
  if (out === undefined || !/\.[^./\\]+$/.test(out)) return asked ?? fallback;
  const named = extensionOf(out, formats);
  if (asked !== undefined && asked !== named)
    throw invalidError(
      `--out: ends in .${named}, but the format is ${asked}; name a file that ends in .${asked}`,
    );
  return named;
}

/** Returns the format of the file's extension. Throws for an unknown one. */
function extensionOf<F extends string>(file: string, formats: readonly F[]): F {
  const found = formats.find((kind) => file.toLowerCase().endsWith(`.${kind}`));
  if (found !== undefined) return found;
  const names = formats.map((kind) => `.${kind}`);
  throw invalidError(`--out: name a file that ends in ${names.slice(0, -1).join(", ")} or ${names.at(-1)}`);
}
