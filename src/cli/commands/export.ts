/** `svc export [--run <id>]`: ledger records as JSON lines, the bytes they were hashed as. */
import { asText } from "../../app/operations/export.ts";
import { notFound } from "../../kernel/errors.ts";
import { ledgerPages } from "../../store/pages.ts";
import { globalOptions, type Register } from "../context.ts";

export const registerExport: Register = (program, context) => {
  globalOptions(program.command("export").description("print ledger records as JSON lines"))
    .option("--run <id>", "only the records of this run")
    .action(async (flags: Record<string, unknown>) => {
      const run = flags["run"] as string | undefined;
      await context.withApp(flags, async ({ core }) => {
        if (run !== undefined && (await core.store.records({ run_id: run, limit: 1 })).length === 0) {
          if ((await core.store.get("runs", run)) === undefined) throw notFound(`unknown run ${run}`);
        }
        for await (const text of asText(ledgerPages(core.store, run))) await context.io.write(text);
      });
    });
};
