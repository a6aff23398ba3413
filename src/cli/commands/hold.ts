/** `svc hold add|list|release`: legal holds. */
import { listHolds, placeHold, releaseHold } from "../../app/operations/holds.ts";
import type { Hold } from "../../model/hold.ts";
import { globalOptions, type Register } from "../context.ts";
import { columns, printable } from "../io.ts";

const SCOPE = { run: "run_id", tenant: "tenant", actor: "actor", tool: "tool" } as const;

export const registerHold: Register = (program, context) => {
  const { io } = context;
  const group = program.command("hold").description("legal holds: what they cover is not deleted");

  globalOptions(group.command("add").description("place a hold"))
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

  globalOptions(group.command("list").description("list holds"))
    .option("--policy <file>", "policy file")
    .option("--all", "released ones too")
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
            printable(hold.by),
            printable(hold.reason),
          ]);
          for (const row of columns(rows)) io.out(row);
        },
        ["policy"],
      );
    });

  globalOptions(group.command("release <id>").description("release a hold; it stays on record"))
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

function describe({ scope }: Hold): string {
  const fields = Object.entries(scope).flatMap(([field, value]) =>
    value === null ? [] : [`${field} ${printable(value)}`],
  );
  return fields.join(", ");
}
