/** `svc export [--run <id>]`: ledger records as JSON lines, the bytes they were hashed as. */
import { exportLedger, exportRun } from "../../app/operations/export.ts";
import { globalOptions, type Register } from "../context.ts";
import { partsOf } from "../door.ts";

export const registerExport: Register = (program, context) => {
  globalOptions(program.command("export").description("print ledger records as JSON lines"))
    .option("--run <id>", "only the records of this run")
    .action(async (flags: Record<string, unknown>) => {
      const run_id = flags["run"] as string | undefined;
      await context.withDoor(flags, async (door) => {
        const trail =
          run_id === undefined
            ? await door.perform(exportLedger, {})
            : await door.perform(exportRun, { run_id, format: "ndjson" });
        for await (const part of partsOf(trail)) await context.io.write(part);
      });
    });
};
