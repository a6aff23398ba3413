/** `svc verify`: verifies the ledger and prints what was checked, what was not, and the first bad record. */
import { stat } from "node:fs/promises";
import { ledgerName, verifyConfiguredLedger } from "../../../evidence/ledger-check.ts";
import type { LedgerCheck } from "../../../evidence/verify-ledger.ts";
import type { StateStore } from "../../../govern/port/store.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { verifyLedger } from "../../../operations/evidence/bundles.ts";
import { openStore } from "../../../store/open.ts";
import {
  type CommandContext,
  type CommandFlags,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { escapeControls } from "../../io.ts";

export const registerVerify: RegisterCommand = (program, context) => {
  const { io } = context;
  globalOptions(program.command("verify").description("Verify the ledger"))
    .option("--tree", "also print the root of the Merkle tree over all records")
    .option("--json", "print the result as JSON")
    .action(async (flags: CommandFlags) => {
      const { what, check } = context.isRemote(flags)
        ? await onServer(context, flags)
        : await verifyLocalLedger(context, flags, { tree: flags["tree"] === true });
      const { records, head, first_bad, root } = check;
      if (first_bad !== null) context.done(1);
      if (flags["json"]) {
        const tree = root === null || first_bad !== null ? {} : { tree: { size: records, root } };
        return io.out(JSON.stringify({ ok: first_bad === null, records, head, first_bad, ...tree }));
      }
      for (const line of first_bad === null ? sound(what, check) : broken(what, check)) io.out(line);
    });
};

/** Returns the server's own verification. Users who do not trust the server verify a bundle instead. */
async function onServer(
  context: CommandContext,
  flags: CommandFlags,
): Promise<{ what: string; check: LedgerCheck }> {
  if (flags["tree"] === true)
    throw invalidError("--tree: needs local data; for a server, verify a bundle instead (svc bundle)");
  const { records, head, first_bad } = await context.withDoor(flags, (door) =>
    door.perform(verifyLedger, {}),
  );
  return {
    what: "as reported by the server",
    check: { records, head, first_bad, root: null } as LedgerCheck,
  };
}

/** Verifies the ledger that the options name. The anchor commands use it too. */
export async function verifyLocalLedger(
  { settings, io }: CommandContext,
  flags: CommandFlags,
  options: { tree?: boolean; sizes?: Iterable<number> },
): Promise<{ what: string; check: LedgerCheck }> {
  const { store, data, database_url } = settings(flags);
  const named = { store, data, database_url, warn: (message: string) => io.err(escapeControls(message)) };
  return { what: ledgerName(named), check: await verifyConfiguredLedger(named, options) };
}

/** Throws if the data directory does not exist, instead of creating a new ledger. */
export async function requireDataFolder({ settings }: CommandContext, flags: CommandFlags): Promise<void> {
  const { store, data } = settings(flags);
  if (store === "postgres" || (await stat(data).catch(() => undefined))?.isDirectory()) return;
  throw invalidError(`${data}: is not a data directory; pass one with -d <dir>`);
}

/** Opens the store that the options name, for commands that need more than the ledger. */
export async function openLedgerStore(context: CommandContext, flags: CommandFlags): Promise<StateStore> {
  await requireDataFolder(context, flags);
  const { store, data, database_url } = context.settings(flags);
  return openStore({ store, data, database_url, warn: (message) => context.io.err(escapeControls(message)) });
}

function sound(what: string, { records, head, root }: LedgerCheck): string[] {
  if (records === 0) return [`nothing to check: ${escapeControls(what)} is empty`];
  return [
    `ok: ${records} ${records === 1 ? "record" : "records"}, head ${head}`,
    `  ledger:      ${escapeControls(what)}`,
    ...(root === null ? [] : [`  tree root:   ${root}`]),
    "  checked:     every record's hash, its link to the record before it, and that no number is missing,",
    "               in the ledger and within each run",
    "  not checked: whether records are missing at the end; compare the head with an anchor (svc anchor verify)",
  ];
}

function broken(what: string, { first_bad }: LedgerCheck): string[] {
  const { seq, problem } = first_bad!;
  return [
    `INVALID: record ${seq}: ${escapeControls(problem)}`,
    `  ledger:      ${escapeControls(what)}`,
    seq === 0
      ? "  no record before it"
      : `  the ${seq === 1 ? "record" : `${seq} records`} before it ${seq === 1 ? "is" : "are"} sound`,
  ];
}
