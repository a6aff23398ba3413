/** `svc verify`: checks the ledger and says what was checked, what was not, and where it breaks. */
import { stat } from "node:fs/promises";
import { verifyLedger } from "../../app/operations/bundles.ts";
import { ledgerName, verifyNamed } from "../../evidence/ledger-check.ts";
import type { LedgerCheck } from "../../evidence/verify-ledger.ts";
import { invalid } from "../../kernel/errors.ts";
import type { Store } from "../../port/store.ts";
import { openStore } from "../../store/open.ts";
import { type Context, type Flags, globalOptions, type Register } from "../context.ts";
import { printable } from "../io.ts";

export const registerVerify: Register = (program, context) => {
  const { io } = context;
  globalOptions(
    program.command("verify").description("check the ledger: every hash, every link, every number"),
  )
    .option("--tree", "also compute the root of the Merkle tree over all records")
    .option("--json", "print the result as JSON")
    .action(async (flags: Flags) => {
      const { what, check } = context.isRemote(flags)
        ? await onServer(context, flags)
        : await verifyHere(context, flags, { tree: flags["tree"] === true });
      const { records, head, first_bad, root } = check;
      if (first_bad !== null) context.done(1);
      if (flags["json"]) {
        const tree = root === null || first_bad !== null ? {} : { tree: { size: records, root } };
        return io.out(JSON.stringify({ ok: first_bad === null, records, head, first_bad, ...tree }));
      }
      for (const line of first_bad === null ? sound(what, check) : broken(what, check)) io.out(line);
    });
};

/** The server's own word; whoever does not trust it takes a bundle and verifies that. */
async function onServer(context: Context, flags: Flags): Promise<{ what: string; check: LedgerCheck }> {
  if (flags["tree"] === true)
    throw invalid("--tree: needs the records themselves; take a bundle (svc bundle) and verify that");
  const { records, head, first_bad } = await context.withDoor(flags, (door) =>
    door.perform(verifyLedger, {}),
  );
  return {
    what: "the server's, by its own word",
    check: { records, head, first_bad, root: null } as LedgerCheck,
  };
}

/** The ledger that the options name, verified; others hold it against anchors. */
export async function verifyHere(
  { settings, io }: Context,
  flags: Flags,
  options: { tree?: boolean; sizes?: Iterable<number> },
): Promise<{ what: string; check: LedgerCheck }> {
  const { store, data, database_url } = settings(flags);
  const named = { store, data, database_url, warn: (message: string) => io.err(printable(message)) };
  return { what: ledgerName(named), check: await verifyNamed(named, options) };
}

/** A data folder that is not there is a mistake, not a new ledger. */
export async function requireDataFolder({ settings }: Context, flags: Flags): Promise<void> {
  const { store, data } = settings(flags);
  if (store === "postgres" || (await stat(data).catch(() => undefined))?.isDirectory()) return;
  throw invalid(`${data}: is not a data folder; give one with -d <dir>`);
}

/** The store that the options name, for what needs more than its ledger. */
export async function openLedgerStore(context: Context, flags: Flags): Promise<Store> {
  await requireDataFolder(context, flags);
  const { store, data, database_url } = context.settings(flags);
  return openStore({ store, data, database_url, warn: (message) => context.io.err(printable(message)) });
}

function sound(what: string, { records, head, root }: LedgerCheck): string[] {
  if (records === 0) return [`nothing to check: ${printable(what)} is empty`];
  return [
    `ok: ${records} ${records === 1 ? "record" : "records"}, head ${head}`,
    `  ledger:      ${printable(what)}`,
    ...(root === null ? [] : [`  tree root:   ${root}`]),
    "  checked:     every record's hash, its link to the record before it, and that no number is missing,",
    "               in the ledger and within each run",
    "  not checked: whether records are missing at the end; hold the head against an anchor (svc anchor verify)",
  ];
}

function broken(what: string, { first_bad }: LedgerCheck): string[] {
  const { seq, problem } = first_bad!;
  return [
    `INVALID: record ${seq}: ${printable(problem)}`,
    `  ledger:      ${printable(what)}`,
    seq === 0
      ? "  no record before it"
      : `  the ${seq === 1 ? "record" : `${seq} records`} before it ${seq === 1 ? "is" : "are"} sound`,
  ];
}
