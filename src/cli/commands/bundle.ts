/** `svc bundle`: a signed bundle of the whole ledger or of one run, read back and verified once it is written. */
import { resolve } from "node:path";
import { bundleLedger, bundleRun, evidenceKey } from "../../app/operations/bundles.ts";
import { ledgerBundle, runBundle } from "../../evidence/bundle.ts";
import { readSigningKey } from "../../evidence/key-files.ts";
import { writeOutFile } from "../../evidence/out-file.ts";
import { type PublicKey, parsePublicKey, type SigningKey } from "../../evidence/signing.ts";
import { verifyBundle } from "../../evidence/verify-bundle.ts";
import { invalid, SvcError } from "../../kernel/errors.ts";
import { plural } from "../../kernel/words.ts";
import { type Context, type Flags, globalOptions, type Register } from "../context.ts";
import { bytesOf } from "../door.ts";
import { printable } from "../io.ts";
import { openLedgerStore } from "./verify.ts";

export const registerBundle: Register = (program, context) => {
  const { io } = context;
  globalOptions(program.command("bundle").description("write a signed bundle of the ledger, or of one run"))
    .option("--key <file>", "private signing key (default: SVC_SIGNING_KEY or signing_key)")
    .requiredOption("--out <file>", "where to write the bundle")
    .option("--run <id>", "only this run")
    .action(async (flags: Flags & { key?: string; out: string; run?: string }) => {
      if (context.isRemote(flags)) return fromServer(context, flags);
      const key = signingKey(context, flags);
      if (key === null)
        throw invalid("which key signs? give --key <file> (svc keygen makes one), or set SVC_SIGNING_KEY");
      const out = resolve(io.cwd, flags.out);
      const store = await openLedgerStore(context, flags);
      try {
        const now = io.clock.now();
        await writeOutFile(
          out,
          flags.run === undefined
            ? ledgerBundle(store, key, now)
            : [await runBundle(store, flags.run, key, now)],
        );
      } finally {
        await store.close();
      }
      await checkWritten(context, out, key, flags.run);
    });
};

/** What counts is what is on the disk, so that is what is checked. */
async function checkWritten(
  { io }: Context,
  out: string,
  key: PublicKey,
  run: string | undefined,
): Promise<void> {
  const verdict = await verifyBundle(out, new Map([[key.key_id, key]]));
  if (!verdict.ok)
    throw new SvcError("corrupt", `${out}: was written but does not verify: ${verdict.problem}`);
  const { kind, count, head } = verdict.report;
  const what = kind === "ledger" ? "the whole ledger" : `run ${printable(run ?? "")}`;
  io.out(
    `wrote ${printable(out)}: ${what}, ${plural(count, "record")}, ledger head ${head}, signed with key ${key.key_id}`,
  );
}

/** A server signs with its own key, and says which that is. */
async function fromServer(
  context: Context,
  flags: Flags & { key?: string; out: string; run?: string },
): Promise<void> {
  if (flags.key !== undefined) throw invalid("--key: a server signs with its own key; leave it out");
  const out = resolve(context.io.cwd, flags.out);
  const { run } = flags;
  const public_key = await context.withDoor(flags, async (door) => {
    const bundle =
      run === undefined
        ? await door.perform(bundleLedger, {})
        : await door.perform(bundleRun, { run_id: run });
    await writeOutFile(out, bytesOf(bundle));
    return (await door.perform(evidenceKey, {})).public_key;
  });
  await checkWritten(context, out, parsePublicKey(public_key, "the server's key"), run);
}

/** The key of the command line, else the configured one, else none. */
export function signingKey({ settings, io }: Context, flags: Flags & { key?: string }): SigningKey | null {
  const path = flags.key === undefined ? settings(flags).signing_key : resolve(io.cwd, flags.key);
  return path === null ? null : readSigningKey(path);
}
