/** `svc halt add|list|lift`: the kill switch from the command line. */
import { halt, listHalts, resume } from "../../app/operations/halts.ts";
import { invalid } from "../../kernel/errors.ts";
import { HALT_FIELDS, type Halt } from "../../model/approval.ts";
import { globalOptions, type Register } from "../context.ts";
import { columns, printable } from "../io.ts";

export const registerHalt: Register = (program, context) => {
  const { io } = context;
  const group = program.command("halt").description("halt new calls, and lift halts");

  globalOptions(group.command("add").description("halt new calls, everywhere or within a scope"))
    .requiredOption("--reason <text>", "why; every blocked call carries it")
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
        const done = await door.perform(halt, { reason: flags["reason"]!, ...scope });
        io.out(`${done.id}  ${describeScope(done)}`);
      });
    });

  globalOptions(group.command("list").description("list the halts in force"))
    .option("--json", "print JSON")
    .action(async (flags: Record<string, unknown>) => {
      await context.withDoor(flags, async (door) => {
        const { halts } = await door.perform(listHalts, {});
        if (flags["json"]) return io.out(JSON.stringify({ halts }));
        if (halts.length === 0) return io.err("no halts in force");
        const rows = halts.map((one) => [
          one.id,
          new Date(one.created_ms).toISOString(),
          printable(one.by),
          describeScope(one),
          printable(one.reason),
        ]);
        for (const row of columns(rows)) io.out(row);
      });
    });

  globalOptions(group.command("lift [id]").description("lift one halt, or all with --all"))
    .option("--all", "lift every halt")
    .option("--as <name>", "who lifts (default: cli)")
    .action(async (id: string | undefined, flags: Record<string, unknown>) => {
      if ((id === undefined) === (flags["all"] !== true)) throw invalid("name one halt, or give --all");
      await context.withDoor(flags, async (door) => {
        const { lifted } = await door.perform(resume, { id });
        for (const one of lifted) io.out(`lifted ${one}`);
        if (lifted.length === 0) io.err("no halts in force");
      });
    });
};

function describeScope(halt: Halt): string {
  const fields = HALT_FIELDS.filter((field) => halt.scope[field] !== null).map(
    (field) => `${field} ${printable(halt.scope[field]!)}`,
  );
  return fields.length === 0 ? "everything" : fields.join(", ");
}
