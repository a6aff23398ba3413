/** `svc report <run>` and `svc report --since <period>`: a run as a page or a PDF, a period in three formats. */
import { DEFAULT_PERIOD, periodReport, runReport, runReportAsPdf } from "../../app/operations/reports.ts";
import { PERIOD_FORMATS } from "../../evidence/report/period-formats.ts";
import { invalid } from "../../kernel/errors.ts";
import { type Context, type Flags, globalOptions, type Register } from "../context.ts";
import { inert } from "../io.ts";
import { tellOrWrite } from "../out.ts";
import { requireDataFolder } from "./verify.ts";

type ReportFlags = Flags & { since?: string; format?: string; out?: string; policy?: string };

export const registerReport: Register = (program, context) => {
  globalOptions(program.command("report [run]").description("report on one run, or on a period"))
    .option("--since <period>", `report on a period: a duration such as ${DEFAULT_PERIOD}, or a date`)
    .option("--format <format>", "of a period's report: md (default), html, json or pdf")
    .option("--out <file>", "write to this file; .html or .pdf picks the format of a run's report")
    .option("--policy <file>", "policy file, for budgets near their limit")
    .action(async (run: string | undefined, flags: ReportFlags) => {
      if (run !== undefined && flags.since !== undefined)
        throw invalid("report on a run or on a period (--since), not on both");
      if (run === undefined && flags.since === undefined)
        throw invalid("report on what? name a run, or a period with --since");
      if (!context.isRemote(flags)) await requireDataFolder(context, flags);
      await (run === undefined ? period(context, flags) : oneRun(context, run, flags));
    });
};

const RUN_FORMATS = { ".html": runReport, ".pdf": runReportAsPdf } as const;

async function oneRun(context: Context, run: string, flags: ReportFlags): Promise<void> {
  const { io } = context;
  if (flags.format !== undefined)
    throw invalid("--format: is for a period; a run's format is that of --out, .html or .pdf");
  const ending = flags.out === undefined ? undefined : /\.[a-z]+$/i.exec(flags.out)?.[0].toLowerCase();
  if (ending === undefined || !Object.hasOwn(RUN_FORMATS, ending)) {
    throw invalid("--out: name a file that ends in .html or .pdf");
  }
  await context.withDoor(flags, async (door) => {
    const report = await door.perform(RUN_FORMATS[ending as keyof typeof RUN_FORMATS], { run_id: run });
    await tellOrWrite(io, report, flags.out);
    if (report.problem !== undefined) {
      io.err(`the trail of the run does not verify: ${inert(report.problem)}; the report says so`);
      context.done(1);
    }
  });
}

async function period(context: Context, flags: ReportFlags): Promise<void> {
  const { io } = context;
  const format = formatOf(flags);
  if (format === "pdf" && flags.out === undefined)
    throw invalid("--out: a PDF is written to a file; name one that ends in .pdf");
  const report = await context.withDoor(
    flags,
    (door) => door.perform(periodReport, { since: flags.since, format }),
    ["policy"],
  );
  await tellOrWrite(io, report, flags.out);
}

const FORMATS = [...PERIOD_FORMATS, "pdf"] as const;

/** What was asked for, else what the file's name says, else Markdown. */
function formatOf({ format, out }: ReportFlags): (typeof FORMATS)[number] {
  const named = format ?? FORMATS.find((one) => out?.toLowerCase().endsWith(`.${one}`)) ?? "md";
  const known = FORMATS.find((one) => one === named);
  if (known === undefined)
    throw invalid(`--format: ${JSON.stringify(named)} is none of ${FORMATS.join(", ")}`);
  return known;
}
