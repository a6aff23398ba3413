/** `svc grants add|list|revoke|preview`: decisions given ahead, from the command line. */
import { type Command, InvalidArgumentError } from "commander";
import type { z } from "zod";
import type { previewInput } from "../../app/operations/grants/grant-input.ts";
import { createGrant, listGrants, previewGrant, revokeGrant } from "../../app/operations/grants.ts";
import { tryDuration } from "../../kernel/duration.ts";
import { invalid } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { type GrantView, namesIn, readCondition } from "../../model/grant.ts";
import { type Context, type Flags, globalOptions, type Register } from "../context.ts";
import { columns, printable } from "../io.ts";

export const registerGrants: Register = (program, context) => {
  const group = program.command("grants").description("approve calls like these ahead, for a while");
  registerAdd(group, context);
  registerList(group, context);
  registerRevoke(group, context);
  registerPreview(group, context);
};

function registerAdd(group: Command, context: Context): void {
  withTerms(globalOptions(group.command("add").description("give a grant")))
    .requiredOption("--expires <time>", "a duration such as 8h, or a timestamp; at most 30 days ahead")
    .requiredOption("--reason <text>", "why")
    .option("--as <name>", "who gives it (default: cli)")
    .option("--json", "print JSON")
    .action(async (flags: Flags) => {
      await context.withDoor(flags, async (door) => {
        const expires_at = timestampOf(String(flags["expires"]), door.clock.now());
        const terms = { ...termsFrom(flags), expires_at, reason: String(flags["reason"]) };
        const grant = await door.perform(createGrant, terms);
        if (flags["json"]) return context.io.out(JSON.stringify(grant));
        const { tool, actor } = grant.match;
        const until = new Date(grant.expires_ms).toISOString();
        context.io.out(
          `${grant.id}: ${printable(tool)} by ${printable(actor)}, at most ${grant.max_uses} until ${until}`,
        );
      });
    });
}

function registerList(group: Command, { io, withDoor }: Context): void {
  globalOptions(group.command("list").description("list grants, newest first"))
    .option("--all", "ended ones too")
    .option("--json", "print JSON")
    .action(async (flags: Flags) => {
      await withDoor(flags, async (door) => {
        const now = door.clock.now();
        const { grants: found } = await door.perform(listGrants, { limit: LIMITS.page_max });
        const grants = flags["all"] ? found : found.filter((one) => stateOf(one, now) === "in force");
        if (flags["json"]) return io.out(JSON.stringify({ grants }));
        if (grants.length === 0) return io.err("no grants");
        const rows = grants.map((one) => [
          one.id,
          stateOf(one, now),
          printable(one.match.tool),
          printable(one.match.actor),
          one.rules.map(printable).join(", "),
          `${one.uses} of ${one.max_uses}`,
          new Date(one.expires_ms).toISOString(),
          printable(one.by),
          printable(one.reason),
        ]);
        for (const row of columns(rows)) io.out(row);
      });
    });
}

function stateOf({ revoked_ms, expires_ms, uses, max_uses }: GrantView, now: number): string {
  if (revoked_ms !== null) return "revoked";
  if (uses >= max_uses) return "used up";
  return now >= expires_ms ? "expired" : "in force";
}

function registerRevoke(group: Command, { io, withDoor }: Context): void {
  globalOptions(group.command("revoke <id>").description("take a grant back"))
    .option("--as <name>", "who revokes (default: cli)")
    .action(async (id: string, flags: Flags) => {
      await withDoor(flags, async (door) => {
        const grant = await door.perform(revokeGrant, { grant_id: id });
        io.out(`${grant.id}: revoked, ${grant.uses} of ${grant.max_uses} used`);
      });
    });
}

function registerPreview(group: Command, { io, withDoor }: Context): void {
  const command = group.command("preview").description("which captured calls a grant would have covered");
  withTerms(globalOptions(command))
    .option("--as <name>", "who would give it (default: cli)")
    .option("--json", "print JSON")
    .action(async (flags: Flags) => {
      await withDoor(flags, async (door) => {
        const { calls, covered, rules } = await door.perform(previewGrant, termsFrom(flags));
        if (flags["json"]) return io.out(JSON.stringify({ calls, covered, rules }));
        const rows = covered.map((one) => [
          new Date(one.captured_ms).toISOString(),
          printable(one.run_id),
          printable(one.tool),
          printable(one.actor),
          one.decision,
          one.rules.map(printable).join(", "),
        ]);
        for (const row of columns(rows)) io.out(row);
        io.out(`${covered.length} of the last ${calls} captured calls would have been covered`);
        if (rules.length > 0) io.out(`rules that asked: ${rules.map(printable).join(", ")}`);
      });
    });
}

const collect = (value: string, before: string[]): string[] => [...before, value];

function withTerms(command: Command): Command {
  return command
    .requiredOption("--tool <glob>", "which tools; not *")
    .requiredOption("--actor <glob>", "which actors; not *")
    .requiredOption("--rule <id>", "a rule whose need for approval it lifts; may be repeated", collect, [])
    .option("--tenant <glob>", "only these tenants")
    .option("--environment <glob>", "only these environments")
    .option("--when <condition>", "a condition such as '$args.amount lte 50'; may be repeated", collect, [])
    .option("--args-only <names>", "no other arguments than these, such as amount,currency")
    .option(
      "--max-uses <n>",
      `how many calls it covers, 1 to ${LIMITS.grant_uses} (default: ${LIMITS.grant_uses})`,
      wholeNumber,
    )
    .option("--budget <path=max>", "the most that a number in the arguments may add up to")
    .option("--irreversible", "calls that nothing can take back, too (admins only)");
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("must be a whole number.");
  return Number(text);
}

function termsFrom(flags: Flags): z.input<typeof previewInput> {
  const one = (name: string) => flags[name] as string | undefined;
  return {
    match: {
      tool: one("tool")!,
      actor: one("actor")!,
      tenant: one("tenant"),
      environment: one("environment"),
    },
    rules: flags["rule"] as string[],
    when: (flags["when"] as string[]).map(readCondition),
    args_only: one("argsOnly") === undefined ? undefined : namesIn(one("argsOnly")!),
    max_uses: flags["maxUses"] as number | undefined,
    budget: one("budget") === undefined ? undefined : budgetOf(one("budget")!),
    irreversible: flags["irreversible"] === true,
  };
}

function budgetOf(text: string): { path: string; max: number } {
  const [, path, max] = /^(.+)=(\d+(?:\.\d+)?)$/s.exec(text) ?? [];
  if (path === undefined || max === undefined)
    throw invalid("--budget: write <path>=<max>, such as '$args.amount=500'");
  return { path, max: Number(max) };
}

function timestampOf(text: string, now: number): string {
  const ms = tryDuration(text);
  return ms === undefined ? text : new Date(now + ms).toISOString();
}
