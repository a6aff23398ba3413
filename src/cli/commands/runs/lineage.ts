/** `svc lineage <run> [<step>]`: lists which results fed which calls. */

import { getRun } from "../../../operations/runs/runs.ts";
import { getLineage } from "../../../operations/runs/values.ts";
import { globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";

export const registerLineage: RegisterCommand = (program, context) => {
  globalOptions(
    program.command("lineage <run> [step]").description("List which results fed which calls of a run"),
  )
    .option("--json", "print JSON")
    .action(async (run_id: string, step: string | undefined, flags: Record<string, unknown>) => {
      const { io } = context;
      const only = step === undefined ? undefined : Number(step);
      await context.withDoor(flags, async (door) => {
        const found = await door.perform(getLineage, { run_id });
        const edges = found.edges.filter(
          ({ from, to }) => only === undefined || from.step === only || to.step === only,
        );
        if (flags["json"]) return io.out(JSON.stringify({ edges }));
        const { steps } = await door.perform(getRun, { run_id });
        const named = (at: { run_id: string; step: number }) =>
          at.run_id === run_id
            ? `step ${at.step} ${escapeControls(steps[at.step]?.tool ?? "")}`
            : `step ${at.step} of ${escapeControls(at.run_id)}`;
        const rows = edges.map(({ from, to, kind }) => [
          named(from),
          "->",
          named(to),
          escapeControls(to.path),
          kind,
        ]);
        for (const row of alignColumns(rows)) io.out(row);
        if (edges.length === 0) io.err("no call carries a value from an earlier result");
      });
    });
};
