/** `svc hold add|list|release`: places, lists and releases legal holds. */
import type { LegalHold } from "../../../govern/runs/hold.ts";
import { listHolds, placeHold, releaseHold } from "../../../operations/retention/holds.ts";
import { globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";

const SCOPE = { run: "run_id", tenant: "tenant", actor: "actor", tool: "tool" } as const;

export const registerHold: RegisterCommand = (program, context) => {
  const { io } = context;
  const group = program.command("hold").description("Manage legal holds");

  globalOptions(group.command("add").description("Place a legal hold"))
    .option("--policy <file>", "policy file")
    .option("--run <id>", "hold this run")
    .option("--tenant <name>", "hold the runs of this tenant")
    .option("--actor <name>", "hold the runs of this actor")
    .option("--tool <name>", "hold the runs that called this tool")
    .requiredOption("--reason <text>", "why, at least 5 characters")
    .option("--as <name>", "who places it (default: cli)")
    .action(async (flags: Record<string, string>) => {
      const scope = Object.entries(SCOPE).flatMap(([flag, field]) =>
        flags[flag] === undefined ? [] : [[field, flags[flag]]],
      );
      await context.withDoor(
        flags,
        async (door) => {
          const input = { ...Object.fromEntries(scope), reason: flags["reason"]! };
          const hold = await door.perform(placeHold, input);
          io.out(`${hold.id}  ${describe(hold)}`);
        },
        ["policy"],
      );
    });

  globalOptions(group.command("list").description("List legal holds"))
    .option("--policy <file>", "policy file")
    .option("--all", "include released holds")
    .option("--json", "print JSON")
    .action(async (flags: Record<string, unknown>) => {
      await context.withDoor(
        flags,
        async (door) => {
          const { holds } = await door.perform(listHolds, { all: Boolean(flags["all"]) });
          if (flags["json"]) return io.out(JSON.stringify({ holds }));
          if (holds.length === 0) return io.err("no holds");
          const rows = holds.map((hold) => [
            hold.id,
            hold.released_ms === null ? "active" : "released",
            describe(hold),
            escapeControls(hold.by),
            escapeControls(hold.reason),
          ]);
          for (const row of alignColumns(rows)) io.out(row);
        },
        ["policy"],
      );
    });

  globalOptions(group.command("release <id>").description("Release a legal hold"))
    .option("--policy <file>", "policy file")
    .option("--as <name>", "who releases it (default: cli)")
    .action(async (id: string, flags: Record<string, string>) => {
      await context.withDoor(
        flags,
        async (door) => {
          const hold = await door.perform(releaseHold, { hold_id: id });
          io.out(`released ${hold.id}`);
        },
        ["policy"],
      );
    });
};

function describe({ scope }: LegalHold): string {
  const fields = Object.entries(scope).flatMap(([field, value]) =>
    value === null ? [] : [`${field} ${escapeControls(value)}`],
  );
  return fields.join(", ");
}
