/** `svc oversight --since <period>`: how people decide what they are asked. */
import { oversightReport } from "../../app/operations/oversight.ts";
import { DEFAULT_PERIOD } from "../../app/operations/reports.ts";
import { PERIOD_FORMATS } from "../../evidence/report/period-formats.ts";
import { invalid } from "../../kernel/errors.ts";
import { type Flags, globalOptions, type Register } from "../context.ts";
import { tellOrWrite } from "../out.ts";
import { requireDataFolder } from "./verify.ts";

type OversightFlags = Flags & {
  since?: string;
  format?: string;
  out?: string;
  anonymous?: boolean;
  policy?: string;
};

export const registerOversight: Register = (program, context) => {
  const { io } = context;
  globalOptions(program.command("oversight").description("report how people decide what they are asked"))
    .option("--since <period>", "a duration such as 30d, or a date", DEFAULT_PERIOD)
    .option("--format <format>", "md, html or json (default: md)")
    .option("--anonymous", "leave the names of approvers out")
    .option("--out <file>", "write to this file instead of printing")
    .option("--policy <file>", "policy file, for the rules never used")
    .action(async (flags: OversightFlags) => {
      const named = flags.format ?? "md";
      const format = PERIOD_FORMATS.find((one) => one === named);
      if (format === undefined)
        throw invalid(`--format: ${JSON.stringify(named)} is none of ${PERIOD_FORMATS.join(", ")}`);
      if (!context.isRemote(flags)) await requireDataFolder(context, flags);
      const input = { since: flags.since, format, ...(flags.anonymous ? { anonymous: true } : {}) };
      const report = await context.withDoor(flags, (door) => door.perform(oversightReport, input), [
        "policy",
      ]);
      await tellOrWrite(io, report, flags.out);
    });
};
