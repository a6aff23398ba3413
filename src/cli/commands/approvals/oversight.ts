/** `svc oversight --since <period>`: reports how approvers decide requests. */
import { PERIOD_FORMATS } from "../../../evidence/report/period/period-formats.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { oversightReport } from "../../../operations/evidence/oversight.ts";
import { DEFAULT_PERIOD } from "../../../operations/evidence/reports.ts";
import { type CommandFlags, globalOptions, type RegisterCommand } from "../../context.ts";
import { printOrWrite } from "../../print-or-write.ts";
import { requireDataFolder } from "../evidence/verify.ts";

type OversightFlags = CommandFlags & {
  since?: string;
  format?: string;
  out?: string;
  anonymous?: boolean;
  policy?: string;
};

export const registerOversight: RegisterCommand = (program, context) => {
  const { io } = context;
  globalOptions(program.command("oversight").description("Report how approvers decide requests"))
    .option("--since <period>", "a duration such as 30d, or a date", DEFAULT_PERIOD)
    .option("--format <format>", "md, html or json (default: md)")
    .option("--anonymous", "omit the names of approvers")
    .option("--out <file>", "write to this file instead of printing")
    .option("--policy <file>", "policy file, to list unused rules")
    .action(async (flags: OversightFlags) => {
      const named = flags.format ?? "md";
      const format = PERIOD_FORMATS.find((one) => one === named);
      if (format === undefined)
        throw invalidError(
          `--format: must be one of ${PERIOD_FORMATS.join(", ")}, not ${JSON.stringify(named)}`,
        );
      if (!context.isRemote(flags)) await requireDataFolder(context, flags);
      const input = { since: flags.since, format, ...(flags.anonymous ? { anonymous: true } : {}) };
      const report = await context.withDoor(flags, (door) => door.perform(oversightReport, input), [
        "policy",
      ]);
      await printOrWrite(io, report, flags.out);
    });
};
