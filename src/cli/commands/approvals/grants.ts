/** `svc grants add|list|revoke|preview`: standing approvals for calls that match. */
import { type Command, InvalidArgumentError } from "commander";
import type { z } from "zod";
import { grantState, parseGrantCondition, splitNames } from "../../../govern/grants/grant.ts";
import { tryDuration } from "../../../kernel/duration.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import type { previewInput } from "../../../operations/grants/grant-input.ts";
import { createGrant, listGrants, previewGrant, revokeGrant } from "../../../operations/grants/grants.ts";
import {
  type CommandContext,
  type CommandFlags,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";

export const registerGrants: RegisterCommand = (program, context) => {
  const group = program.command("grants").description("Manage standing approvals");
  registerAdd(group, context);
  registerList(group, context);
  registerRevoke(group, context);
  registerPreview(group, context);
};

function registerAdd(group: Command, context: CommandContext): void {
  withTerms(globalOptions(group.command("add").description("Create a grant")))
    .requiredOption("--expires <time>", "a duration such as 8h, or a timestamp; at most 30 days ahead")
    .requiredOption("--reason <text>", "why")
    .option("--as <name>", "who creates it (default: cli)")
    .option("--json", "print JSON")
    .action(async (flags: CommandFlags) => {
      await context.withDoor(flags, async (door) => {
        const expires_at = timestampOf(String(flags["expires"]), door.clock.now());
        const terms = { ...termsFrom(flags), expires_at, reason: String(flags["reason"]) };
        const grant = await door.perform(createGrant, terms);
        if (flags["json"]) return context.io.out(JSON.stringify(grant));
        const { tool, actor } = grant.match;
        const until = new Date(grant.expires_ms).toISOString();
        context.io.out(
          `${grant.id}: ${escapeControls(tool)} by ${escapeControls(actor)}, at most ${grant.max_uses} until ${until}`,
        );
      });
    });
}

function registerList(group: Command, { io, withDoor }: CommandContext): void {
  globalOptions(group.command("list").description("List grants, newest first"))
    .option("--all", "include ended grants")
    .option("--json", "print JSON")
    .action(async (flags: CommandFlags) => {
      await withDoor(flags, async (door) => {
        const now = door.clock.now();
        const { grants: found } = await door.perform(listGrants, { limit: SERVICE_LIMITS.page_max });
        const grants = flags["all"] ? found : found.filter((one) => grantState(one, now) === "active");
        if (flags["json"]) return io.out(JSON.stringify({ grants }));
        if (grants.length === 0) return io.err("no grants");
        const rows = grants.map((one) => [
          one.id,
          grantState(one, now),
          escapeControls(one.match.tool),
          escapeControls(one.match.actor),
          one.rules.map(escapeControls).join(", "),
          `${one.uses} of ${one.max_uses}`,
          new Date(one.expires_ms).toISOString(),
          escapeControls(one.by),
          escapeControls(one.reason),
        ]);
        for (const row of alignColumns(rows)) io.out(row);
      });
    });
}

function registerRevoke(group: Command, { io, withDoor }: CommandContext): void {
  globalOptions(group.command("revoke <id>").description("Revoke a grant"))
    .option("--as <name>", "who revokes (default: cli)")
    .action(async (id: string, flags: CommandFlags) => {
      await withDoor(flags, async (door) => {
        const grant = await door.perform(revokeGrant, { grant_id: id });
        io.out(`${grant.id}: revoked, ${grant.uses} of ${grant.max_uses} used`);
      });
    });
}

function registerPreview(group: Command, { io, withDoor }: CommandContext): void {
  const command = group.command("preview").description("List captured calls that a grant would cover");
  withTerms(globalOptions(command))
    .option("--as <name>", "who would create it (default: cli)")
    .option("--json", "print JSON")
    .action(async (flags: CommandFlags) => {
      await withDoor(flags, async (door) => {
        const { calls, covered, rules } = await door.perform(previewGrant, termsFrom(flags));
        if (flags["json"]) return io.out(JSON.stringify({ calls, covered, rules }));
        const rows = covered.map((one) => [
          new Date(one.captured_ms).toISOString(),
          escapeControls(one.run_id),
          escapeControls(one.tool),
          escapeControls(one.actor),
          one.decision,
          one.rules.map(escapeControls).join(", "),
        ]);
        for (const row of alignColumns(rows)) io.out(row);
        io.out(`${covered.length} of the last ${calls} captured calls would have been covered`);
        if (rules.length > 0) io.out(`rules that required approval: ${rules.map(escapeControls).join(", ")}`);
      });
    });
}

const collect = (value: string, before: string[]): string[] => [...before, value];

function withTerms(command: Command): Command {
  return command
    .requiredOption("--tool <glob>", "which tools; not *")
    .requiredOption("--actor <glob>", "which actors; not *")
    .requiredOption("--rule <id>", "rule whose approval it replaces; repeatable", collect, [])
    .option("--tenant <glob>", "only these tenants")
    .option("--environment <glob>", "only these environments")
    .option("--when <condition>", "condition such as '$args.amount lte 50'; repeatable", collect, [])
    .option("--args-only <names>", "the only allowed arguments, such as amount,currency")
    .option(
      "--max-uses <n>",
      `how many calls it covers, 1 to ${SERVICE_LIMITS.grant_uses} (default: ${SERVICE_LIMITS.grant_uses})`,
      wholeNumber,
    )
    .option("--budget <path=max>", "maximum total of a numeric argument")
    .option("--irreversible", "also cover irreversible calls (admins only)");
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("must be a whole number.");
  return Number(text);
}

function termsFrom(flags: CommandFlags): z.input<typeof previewInput> {
  const one = (name: string) => flags[name] as string | undefined;
  return {
    match: {
      tool: one("tool")!,
      actor: one("actor")!,
      tenant: one("tenant"),
      environment: one("environment"),
    },
    rules: flags["rule"] as string[],
    when: (flags["when"] as string[]).map(parseGrantCondition),
    args_only: one("argsOnly") === undefined ? undefined : splitNames(one("argsOnly")!),
    max_uses: flags["maxUses"] as number | undefined,
    budget: one("budget") === undefined ? undefined : budgetOf(one("budget")!),
    irreversible: flags["irreversible"] === true,
  };
}

function budgetOf(text: string): { path: string; max: number } {
  const [, path, max] = /^(.+)=(\d+(?:\.\d+)?)$/s.exec(text) ?? [];
  if (path === undefined || max === undefined)
    throw invalidError("--budget: write <path>=<max>, such as '$args.amount=500'");
  return { path, max: Number(max) };
}

function timestampOf(text: string, now: number): string {
  const ms = tryDuration(text);
  return ms === undefined ? text : new Date(now + ms).toISOString();
}
