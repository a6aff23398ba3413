/** `svc keys add|list`: the key file from the command line. A key is printed once and kept nowhere. */
import { KeyManager } from "../../auth/manage.ts";
import { invalid } from "../../kernel/errors.ts";
import { type Context, globalOptions, type Register } from "../context.ts";
import { inert, table } from "../io.ts";

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
    .action(async (name: string, flags: Record<string, unknown>) => {
      const created = await manager(context, flags, { create_file: true }).create(name, {
        roles: flags["role"] as string[],
        max_permissions: (flags["maxPermissions"] as string[] | undefined) ?? null,
        groups: (flags["group"] as string[] | undefined) ?? null,
        tenant: (flags["tenant"] as string | undefined) ?? null,
        tenant_only: flags["tenantOnly"] === true ? true : null,
        not_before: (flags["notBefore"] as string | undefined) ?? null,
        expires_at: (flags["expiresAt"] as string | undefined) ?? null,
        allow_observe: flags["allowObserve"] === true ? true : null,
      });
      io.err(`key ${inert(created.name)} (${created.roles.join(", ")}) was added; it is shown this once:`);
      io.out(created.key);
    });

  globalOptions(group.command("list").description("list key entries"))
    .option("--keys <file>", "API key file")
    .option("--json", "print JSON")
    .action(async (flags: Record<string, unknown>) => {
      const keys = await manager(context, flags).list();
      if (flags["json"]) return io.out(JSON.stringify({ keys }));
      const rows = keys.map((key) => [
        String(key.index),
        inert(key.name),
        key.roles.join(","),
        key.disabled ? "disabled" : (key.expires_at ?? ""),
        key.fingerprint,
      ]);
      for (const row of table(rows)) io.out(row);
    });
};

function manager(
  context: Context,
  flags: Record<string, unknown>,
  options: { create_file?: boolean } = {},
): KeyManager {
  const path = context.settings(flags, ["keys"]).keys;
  if (path === null) throw invalid("which key file? give --keys <file>, or set SVC_KEYS");
  return new KeyManager(path, { env: context.io.clock, ...options });
}
