/** `svc bundle`: a signed bundle of the whole ledger or of one run, read back and verified once it is written. */
import { resolve } from "node:path";
import { ledgerBundle, runBundle } from "../../evidence/bundle.ts";
import { readSigningKey } from "../../evidence/key-files.ts";
import { writeOutFile } from "../../evidence/out-file.ts";
import type { SigningKey } from "../../evidence/signing.ts";
import { verifyBundle } from "../../evidence/verify-bundle.ts";
import { invalid, SvcError } from "../../kernel/errors.ts";
import { type Context, type Flags, globalOptions, type Register } from "../context.ts";
import { inert } from "../io.ts";
import { openLedgerStore } from "./verify.ts";

export const registerBundle: Register = (program, context) => {
  const { io } = context;
  globalOptions(program.command("bundle").description("write a signed bundle of the ledger, or of one run"))
    .option("--key <file>", "private signing key (default: SVC_SIGNING_KEY or signing_key)")
    .requiredOption("--out <file>", "where to write the bundle")
    .option("--run <id>", "only this run")
    .action(async (flags: Flags & { key?: string; out: string; run?: string }) => {
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
      // What counts is what is on the disk, so that is what is checked.
      const verdict = await verifyBundle(out, new Map([[key.key_id, key]]));
      if (!verdict.ok)
        throw new SvcError("corrupt", `${out}: was written but does not verify: ${verdict.problem}`);
      const { kind, count, head } = verdict.report;
      const what = kind === "ledger" ? "the whole ledger" : `run ${inert(flags.run ?? "")}`;
      io.out(
        `wrote ${inert(out)}: ${what}, ${count} records, ledger head ${head}, signed with key ${key.key_id}`,
      );
    });
};

/** The key of the command line, else the configured one, else none. */
export function signingKey({ settings, io }: Context, flags: Flags & { key?: string }): SigningKey | null {
  const path = flags.key === undefined ? settings(flags).signing_key : resolve(io.cwd, flags.key);
  return path === null ? null : readSigningKey(path);
}
