/** `svc bundle`: writes a signed bundle of the entire ledger or of one run, then reads it back and verifies it. */
import { resolve } from "node:path";
import { writeOutFile } from "../../../evidence/atomic-file.ts";
import { ledgerBundle, runBundle } from "../../../evidence/bundles/bundle.ts";
import { verifyBundle } from "../../../evidence/bundles/verify-bundle.ts";
import { readSigningKey } from "../../../evidence/key-files.ts";
import { type PublicKey, parsePublicKey, type SigningKey } from "../../../evidence/signing.ts";
import { invalidError, SvcError } from "../../../kernel/errors.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import { bundleLedger, bundleRun, evidenceKey } from "../../../operations/evidence/bundles.ts";
import {
  type CommandContext,
  type CommandFlags,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { escapeControls } from "../../io.ts";
import { documentBytes } from "../../operation-client.ts";
import { openLedgerStore } from "./verify.ts";

export const registerBundle: RegisterCommand = (program, context) => {
  const { io } = context;
  globalOptions(program.command("bundle").description("Write a signed bundle of the ledger or of one run"))
    .option("--key <file>", "private signing key (default: SVC_SIGNING_KEY or signing_key)")
    .requiredOption("--out <file>", "file to write the bundle to")
    .option("--run <id>", "only this run")
    .action(async (flags: CommandFlags & { key?: string; out: string; run?: string }) => {
      if (context.isRemote(flags)) return fromServer(context, flags);
      const key = signingKey(context, flags);
      if (key === null)
        throw invalidError(
          "no signing key: pass --key <file> (svc keygen creates one), or set SVC_SIGNING_KEY",
        );
      const out = resolve(io.cwd, flags.out);
      const store = await openLedgerStore(context, flags);
      try {
        const now = io.clock.now();
        await writeOutFile(
          out,
          flags.run === undefined
            ? ledgerBundle(store, key, now)
            : await runBundle(store, flags.run, key, now),
        );
      } finally {
        await store.close();
      }
      await checkWritten(context, out, key, flags.run);
    });
};

/** Verifies the file on disk. */
async function checkWritten(
  { io }: CommandContext,
  out: string,
  key: PublicKey,
  run: string | undefined,
): Promise<void> {
  const verdict = await verifyBundle(out, new Map([[key.key_id, key]]));
  if (!verdict.ok)
    throw new SvcError("corrupt", `${out}: was written but does not verify: ${verdict.problem}`);
  const { kind, count, head } = verdict.report;
  const what = kind === "ledger" ? "the whole ledger" : `run ${escapeControls(run ?? "")}`;
  io.out(
    `wrote ${escapeControls(out)}: ${what}, ${formatCountOf(count, "record")}, ledger head ${head}, signed with key ${key.key_id}`,
  );
}

/** Downloads a bundle that the server signs, with the server's public key to verify it. */
async function fromServer(
  context: CommandContext,
  flags: CommandFlags & { key?: string; out: string; run?: string },
): Promise<void> {
  if (flags.key !== undefined) throw invalidError("--key: a server signs with its own key; omit it");
  const out = resolve(context.io.cwd, flags.out);
  const { run } = flags;
  const public_key = await context.withDoor(flags, async (door) => {
    const bundle =
      run === undefined
        ? await door.perform(bundleLedger, {})
        : await door.perform(bundleRun, { run_id: run });
    await writeOutFile(out, documentBytes(bundle));
    return (await door.perform(evidenceKey, {})).public_key;
  });
  await checkWritten(context, out, parsePublicKey(public_key, "the server's key"), run);
}

/** Returns the key from the command line, else the configured key, else null. */
export function signingKey(
  { settings, io }: CommandContext,
  flags: CommandFlags & { key?: string },
): SigningKey | null {
  const path = flags.key === undefined ? settings(flags).signing_key : resolve(io.cwd, flags.key);
  return path === null ? null : readSigningKey(path);
}
