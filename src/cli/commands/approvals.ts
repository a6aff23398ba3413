/** `svc approvals list|approve|deny`: deciding requests from the command line. */
import { approve, deny, listApprovals } from "../../app/operations/approvals.ts";
import type { ApprovalStatus } from "../../model/approval.ts";
import { globalOptions, type Register } from "../context.ts";
import { inert, table } from "../io.ts";

export const registerApprovals: Register = (program, context) => {
  const { io } = context;
  const group = program.command("approvals").description("approval requests");

  globalOptions(group.command("list").description("list requests, newest first"))
    .option("--status <status>", "pending, escalated, approved, denied, expired or consumed")
    .option("--run <id>", "only those of this run")
    .option("--json", "print JSON")
    .action(async (flags: Record<string, string>) => {
      const query = {
        limit: 500,
        status: flags["status"] as ApprovalStatus | undefined,
        run_id: flags["run"],
      };
      await context.withDoor(flags, async (door) => {
        const { approvals } = await door.perform(listApprovals, query);
        if (flags["json"]) return io.out(JSON.stringify({ approvals }));
        if (approvals.length === 0) return io.err("no requests");
        const rows = approvals.map((one) => [
          one.id,
          one.status,
          inert(one.tool),
          inert(one.run_id),
          inert(one.actor),
          `(${one.arg_names.map(inert).join(", ")})`,
          inert(one.decided_by ?? ""),
        ]);
        for (const row of table(rows)) io.out(row);
      });
    });

  for (const [verb, op] of [
    ["approve", approve],
    ["deny", deny],
  ] as const) {
    globalOptions(group.command(`${verb} <id>`).description(`${verb} a request`))
      .option("--as <name>", "who decides (default: cli)")
      .option("--note <text>", "why")
      .action(async (id: string, flags: Record<string, string>) => {
        const input = { approval_id: id, note: flags["note"] };
        await context.withDoor(flags, async (door) => {
          const done = await door.perform(op, input);
          const more =
            done.status === "pending" || done.status === "escalated"
              ? ` (${done.votes.length} of ${done.approvers.quorum})`
              : "";
          io.out(`${done.id}: ${done.status}${more}`);
        });
      });
  }
};
