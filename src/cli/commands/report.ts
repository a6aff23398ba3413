/** `svc report <run>` and `svc report --since <period>`: a run as a page or a PDF, a period in three formats. */
import { DEFAULT_PERIOD, periodReport, runReport, runReportAsPdf } from "../../app/operations/reports.ts";
import { PERIOD_FORMATS } from "../../evidence/report/period-formats.ts";
import { invalid } from "../../kernel/errors.ts";
import { type Context, type Flags, globalOptions, type Register } from "../context.ts";
import { printable } from "../io.ts";
import { tellOrWrite } from "../out.ts";
import { requireDataFolder } from "./verify.ts";

type ReportFlags = Flags & { since?: string; format?: string; out?: string; policy?: string };

export const registerReport: Register = (program, context) => {
  globalOptions(program.command("report [run]").description("report on one run, or on a period"))
    .option("--since <period>", `report on a period: a duration such as ${DEFAULT_PERIOD}, or a date`)
    .option("--format <format>", "of a period's report: md, html, json or pdf (default: md)")
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

const RUN_FORMATS = { html: runReport, pdf: runReportAsPdf } as const;

async function oneRun(context: Context, run: string, flags: ReportFlags): Promise<void> {
  const { io } = context;
  if (flags.format !== undefined)
    throw invalid("--format: is for a period; a run's format is that of --out, .html or .pdf");
  const kind = flags.out === undefined ? "html" : endingOf(flags.out, Object.keys(RUN_FORMATS));
  await context.withDoor(flags, async (door) => {
    const report = await door.perform(RUN_FORMATS[kind as keyof typeof RUN_FORMATS], { run_id: run });
    await tellOrWrite(io, report, flags.out);
    if (report.problem !== undefined) {
      io.err(`the trail of the run does not verify: ${printable(report.problem)}; the report says so`);
      context.done(1);
    }
  });
}

/** The format that a file's name promises; a file that holds another one would only mislead. */
function endingOf(file: string, kinds: readonly string[]): string {
  const ending = kinds.find((kind) => file.toLowerCase().endsWith(`.${kind}`));
  if (ending !== undefined) return ending;
  const names = kinds.map((kind) => `.${kind}`);
  throw invalid(`--out: name a file that ends in ${names.slice(0, -1).join(", ")} or ${names.at(-1)}`);
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

/** What was asked for, else what the file's name says, else Markdown; the two must not say different things. */
function formatOf({ format, out }: ReportFlags): (typeof FORMATS)[number] {
  const asked = format === undefined ? undefined : FORMATS.find((one) => one === format);
  if (format !== undefined && asked === undefined)
    throw invalid(`--format: ${JSON.stringify(format)} is none of ${FORMATS.join(", ")}`);
  if (out === undefined || !/\.[^./\\]+$/.test(out)) return asked ?? "md";
  const named = endingOf(out, FORMATS) as (typeof FORMATS)[number];
  if (asked !== undefined && asked !== named)
    throw invalid(
      `--out: a file that ends in .${named} would hold ${asked}; name one that ends in .${asked}`,
    );
  return named;
}
