/** `svc export [--run <id>]`: prints ledger records as JSON lines, byte for byte as they were hashed. */
import { exportLedger, exportRun } from "../../../operations/evidence/export.ts";
import { globalOptions, type RegisterCommand } from "../../context.ts";
import { documentChunks } from "../../operation-client.ts";

export const registerExport: RegisterCommand = (program, context) => {
  globalOptions(program.command("export").description("Print ledger records as JSON lines"))
    .option("--run <id>", "only records of this run")
    .action(async (flags: Record<string, unknown>) => {
      const run_id = flags["run"] as string | undefined;
      await context.withDoor(flags, async (door) => {
        const trail =
          run_id === undefined
            ? await door.perform(exportLedger, {})
            : await door.perform(exportRun, { run_id, format: "ndjson" });
        for await (const part of documentChunks(trail)) await context.io.write(part);
      });
    });
};
