/** `svc halt add|list|lift`: halts new calls and lifts halts. */
import { HALT_FIELDS, type StoredHalt } from "../../../govern/approvals/approval.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { haltCalls, liftHalts, listHalts } from "../../../operations/halts.ts";
import { globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";

export const registerHalt: RegisterCommand = (program, context) => {
  const { io } = context;
  const group = program.command("halt").description("Halt new calls and lift halts");

  globalOptions(group.command("add").description("Halt all new calls, or those within a scope"))
    .requiredOption("--reason <text>", "reason, shown with every blocked call")
    .option("--tool <glob>", "only these tools")
    .option("--actor <glob>", "only these actors")
    .option("--tenant <glob>", "only these tenants")
    .option("--environment <glob>", "only these environments")
    .option("--as <name>", "who halts (default: cli)")
    .action(async (flags: Record<string, string>) => {
      const scope = Object.fromEntries(
        HALT_FIELDS.flatMap((field) => (flags[field] === undefined ? [] : [[field, flags[field]]])),
      );
      await context.withDoor(flags, async (door) => {
        const done = await door.perform(haltCalls, { reason: flags["reason"]!, ...scope });
        io.out(`${done.id}  ${describeScope(done)}`);
      });
    });

  globalOptions(group.command("list").description("List active halts"))
    .option("--json", "print JSON")
    .action(async (flags: Record<string, unknown>) => {
      await context.withDoor(flags, async (door) => {
        const { halts } = await door.perform(listHalts, {});
        if (flags["json"]) return io.out(JSON.stringify({ halts }));
        if (halts.length === 0) return io.err("no active halts");
        const rows = halts.map((one) => [
          one.id,
          new Date(one.created_ms).toISOString(),
          escapeControls(one.by),
          describeScope(one),
          escapeControls(one.reason),
        ]);
        for (const row of alignColumns(rows)) io.out(row);
      });
    });

  globalOptions(group.command("lift [id]").description("Lift one halt or all halts"))
    .option("--all", "lift every halt")
    .option("--as <name>", "who lifts (default: cli)")
    .action(async (id: string | undefined, flags: Record<string, unknown>) => {
      if ((id === undefined) === (flags["all"] !== true)) throw invalidError("pass a halt id or --all");
      await context.withDoor(flags, async (door) => {
        const { lifted } = await door.perform(liftHalts, { id });
        for (const one of lifted) io.out(`lifted ${one}`);
        if (lifted.length === 0) io.err("no active halts");
      });
    });
};

function describeScope(halt: StoredHalt): string {
  const fields = HALT_FIELDS.filter((field) => halt.scope[field] !== null).map(
    (field) => `${field} ${escapeControls(halt.scope[field]!)}`,
  );
  return fields.length === 0 ? "everything" : fields.join(", ");
}
