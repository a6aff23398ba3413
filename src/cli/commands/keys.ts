/** `svc keys add|list`: the key file from the command line. A key is printed once and kept nowhere. */
import { createKey, listKeys } from "../../app/operations/keys.ts";
import { KeyManager } from "../../auth/manage.ts";
import { invalid } from "../../kernel/errors.ts";
import type { Role } from "../../model/roles.ts";
import { type Context, globalOptions, type Register } from "../context.ts";
import { columns, printable } from "../io.ts";

const collect = (value: string, before: string[] = []): string[] => [
  ...before,
  ...value.split(",").map((part) => part.trim()),
];

export const registerKeys: Register = (program, context) => {
  const { io } = context;
  const group = program.command("keys").description("API keys");

  globalOptions(
    group.command("add <name>").description("make a key: prints it once, appends its hash to the key file"),
  )
    .option("--keys <file>", "API key file")
    .requiredOption(
      "--role <roles>",
      "agent, auditor, approver, operator or admin; several with commas",
      collect,
    )
    .option(
      "--max-permissions <globs>",
      "agent keys: the most a run may request; several with commas",
      collect,
    )
    .option("--group <names>", "groups for approvals; several with commas", collect)
    .option("--tenant <name>", "tenant of the key's runs")
    .option("--tenant-only", "every role of the key holds within its tenant only")
    .option("--not-before <time>", "ISO 8601; before it the key does not work")
    .option("--expires-at <time>", "ISO 8601; after it the key does not work")
    .option("--allow-observe", "may open runs in observe and advise mode")
    .option("--self-rollback", "the agent may plan and carry out the rollback of its own runs")
    .action(async (name: string, flags: Record<string, unknown>) => {
      const fields = {
        roles: flags["role"] as Role[],
        ...given("max_permissions", flags["maxPermissions"] as string[] | undefined),
        ...given("groups", flags["group"] as string[] | undefined),
        ...given("tenant", flags["tenant"] as string | undefined),
        ...(flags["tenantOnly"] === true ? { tenant_only: true } : {}),
        ...given("not_before", flags["notBefore"] as string | undefined),
        ...given("expires_at", flags["expiresAt"] as string | undefined),
        ...(flags["allowObserve"] === true ? { allow_observe: true } : {}),
        ...(flags["selfRollback"] === true ? { self_rollback: true } : {}),
      };
      const created = context.isRemote(flags)
        ? await context.withDoor(flags, (door) => door.perform(createKey, { name, ...fields }))
        : await manager(context, flags, { create_file: true }).create(name, fields);
      io.err(
        `key ${printable(created.name)} (${created.roles.join(", ")}) was added; it is shown this once:`,
      );
      io.out(created.key);
      if (created.roles.includes("agent") && created.max_permissions.length === 0)
        io.err("without --max-permissions it can request none: its runs can call no tool");
    });

  globalOptions(group.command("list").description("list key entries"))
    .option("--keys <file>", "API key file")
    .option("--json", "print JSON")
    .action(async (flags: Record<string, unknown>) => {
      const keys = context.isRemote(flags)
        ? (await context.withDoor(flags, (door) => door.perform(listKeys, {}))).keys
        : await manager(context, flags).list();
      if (flags["json"]) return io.out(JSON.stringify({ keys }));
      const rows = keys.map((key) => [
        String(key.index),
        printable(key.name),
        key.roles.join(","),
        key.disabled ? "disabled" : (key.expires_at ?? ""),
        key.fingerprint,
      ]);
      for (const row of columns(rows)) io.out(row);
    });
};

const given = <N extends string, T>(name: N, value: T | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { [K in N]?: T };

function manager(
  context: Context,
  flags: Record<string, unknown>,
  options: { create_file?: boolean } = {},
): KeyManager {
  const path = context.settings(flags, ["keys"]).keys;
  if (path === null) throw invalid("which key file? give --keys <file>, or set SVC_KEYS");
  return new KeyManager(path, { env: context.io.clock, ...options });
}
