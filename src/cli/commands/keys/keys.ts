/** `svc keys add|list`: manages the key file. A key is printed once and stored only as a hash. */
import type { Command } from "commander";
import { KeyManager } from "../../../auth/key-manager.ts";
import type { PrincipalRole } from "../../../govern/roles.ts";
import { invalidError, notFoundError } from "../../../kernel/errors.ts";
import { changeKey, createKey, listKeys } from "../../../operations/keys.ts";
import { type CommandContext, globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";
import type { OperationClient } from "../../operation-client.ts";

const collect = (value: string, before: string[] = []): string[] => [
  ...before,
  ...value.split(",").map((part) => part.trim()),
];

export const registerKeys: RegisterCommand = (program, context) => {
  const { io } = context;
  const group = program.command("keys").description("Create and list API keys");

  globalOptions(group.command("add <name>").description("Create a key and print it once"))
    .option("--keys <file>", "API key file")
    .requiredOption("--role <roles>", "agent, auditor, approver, operator or admin; comma-separated", collect)
    .option(
      "--max-permissions <globs>",
      "agent keys: permissions that a run can request; comma-separated",
      collect,
    )
    .option("--group <names>", "groups for approvals; comma-separated", collect)
    .option("--tenant <name>", "tenant of the key's runs")
    .option("--tenant-only", "limit every role of the key to its tenant")
    .option("--not-before <time>", "start of validity (ISO 8601)")
    .option("--expires-at <time>", "end of validity (ISO 8601)")
    .option("--allow-observe", "allow runs in observe and advise mode")
    .option("--self-rollback", "allow the agent to roll back its own runs")
    .option("--may-give", "allow the agent to send users' texts to its runs")
    .option("--may-sandbox", "let svc run prove with this key that an agent is confined")
    .action(async (name: string, flags: Record<string, unknown>) => {
      const fields = {
        roles: flags["role"] as PrincipalRole[],
        ...given("max_permissions", flags["maxPermissions"] as string[] | undefined),
        ...given("groups", flags["group"] as string[] | undefined),
        ...given("tenant", flags["tenant"] as string | undefined),
        ...(flags["tenantOnly"] === true ? { tenant_only: true } : {}),
        ...given("not_before", flags["notBefore"] as string | undefined),
        ...given("expires_at", flags["expiresAt"] as string | undefined),
        ...(flags["allowObserve"] === true ? { allow_observe: true } : {}),
        ...(flags["selfRollback"] === true ? { self_rollback: true } : {}),
        ...(flags["mayGive"] === true ? { may_give: true } : {}),
        ...(flags["maySandbox"] === true ? { may_sandbox: true } : {}),
      };
      const created = context.isRemote(flags)
        ? await context.withDoor(flags, (door) => door.perform(createKey, { name, ...fields }))
        : await manager(context, flags, { create_file: true }).create(name, fields);
      io.err(
        `added key ${escapeControls(created.name)} (${created.roles.join(", ")}); it is shown only once:`,
      );
      io.out(created.key);
      if (created.roles.includes("agent") && created.max_permissions.length === 0)
        io.err("this key has no --max-permissions, so its runs cannot call any tool");
    });

  globalOptions(group.command("list").description("List API keys"))
    .option("--keys <file>", "API key file")
    .option("--json", "print JSON")
    .action(async (flags: Record<string, unknown>) => {
      const keys = context.isRemote(flags)
        ? (await context.withDoor(flags, (door) => door.perform(listKeys, {}))).keys
        : await manager(context, flags).list();
      if (flags["json"]) return io.out(JSON.stringify({ keys }));
      const rows = keys.map((key) => [
        String(key.index),
        escapeControls(key.name),
        key.roles.join(","),
        key.disabled ? "disabled" : (key.expires_at ?? ""),
        key.fingerprint,
      ]);
      for (const row of alignColumns(rows)) io.out(row);
    });

  registerEnable(group, context);
};

function registerEnable(group: Command, context: CommandContext): void {
  globalOptions(group.command("enable <fingerprint>").description("Enable a disabled key"))
    .option("--keys <file>", "API key file")
    .action(async (fingerprint: string, flags: Record<string, unknown>) => {
      const name = context.isRemote(flags)
        ? await context.withDoor(flags, (door) => enableRemote(door, fingerprint))
        : await enableLocal(manager(context, flags), fingerprint);
      context.io.out(`enabled ${escapeControls(name)}`);
    });
}

async function enableRemote(door: OperationClient, fingerprint: string): Promise<string> {
  const { keys } = await door.perform(listKeys, {});
  const { index } = keyNamed(keys, fingerprint);
  return (await door.perform(changeKey, { index, fingerprint, disabled: false })).name;
}

async function enableLocal(keys: KeyManager, fingerprint: string): Promise<string> {
  const { index } = keyNamed(await keys.list(), fingerprint);
  return (await keys.patch(index, { disabled: false }, fingerprint)).name;
}

function keyNamed<K extends { fingerprint: string }>(keys: readonly K[], fingerprint: string): K {
  const key = keys.find((one) => one.fingerprint === fingerprint);
  if (key === undefined)
    throw notFoundError(
      `no key has the fingerprint ${escapeControls(fingerprint)}; see svc keys list`,
      "unknown_key",
    );
  return key;
}

const given = <N extends string, T>(name: N, value: T | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { [K in N]?: T };

function manager(
  context: CommandContext,
  flags: Record<string, unknown>,
  options: { create_file?: boolean } = {},
): KeyManager {
  const path = context.settings(flags, ["keys"]).keys;
  if (path === null) throw invalidError("no key file: pass --keys <file>, or set SVC_KEYS");
  return new KeyManager(path, { env: context.io.clock, ...options });
}
