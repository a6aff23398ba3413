/** `svc backup --out <file>`: writes a consistent copy of the data as a tar archive while the service runs. */
import { createReadStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileError } from "../../../config/files.ts";
import { createOutFile } from "../../../evidence/atomic-file.ts";
import type { BackupFile } from "../../../govern/port/store.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { quoteForShell } from "../../../kernel/shell-quote.ts";
import { type TarEntry, writeTar } from "../../../kernel/tar.ts";
import type { LedgerHead } from "../../../ledger/record.ts";
import {
  type CommandContext,
  type CommandFlags,
  globalOptions,
  NEEDS_LOCAL_DATA,
  type RegisterCommand,
} from "../../context.ts";
import { canRunWithoutStore } from "../../data-directory.ts";
import { escapeControls } from "../../io.ts";
import { openLedgerStore } from "../evidence/verify.ts";

export const registerBackup: RegisterCommand = (program, context) => {
  const { io } = context;
  globalOptions(program.command("backup").description("Back up the data while the service runs"))
    .requiredOption("--out <file>", "archive to write (tar); an existing file is not replaced")
    .option("--json", "print the result as JSON")
    .action(async (flags: CommandFlags & { out: string }) => {
      if (context.isRemote(flags)) throw invalidError(NEEDS_LOCAL_DATA);
      const settings = context.settings(flags);
      if (settings.store === "postgres")
        throw invalidError(
          "back up a PostgreSQL database with pg_dump or pg_basebackup; see docs/guides/backups.md",
        );
      canRunWithoutStore("backup", settings);
      const out = resolve(io.cwd, flags.out);
      const { records, hash: head } = await writeBackup(context, flags, out);
      if (flags["json"]) return io.out(JSON.stringify({ file: out, store: settings.store, records, head }));
      io.out(`wrote ${escapeControls(out)}: ${settings.store} store, ${records} records, head ${head}`);
      io.out(`  restore:   mkdir -m 700 <dir> && tar -xf ${escapeControls(quoteForShell(out))} -C <dir>`);
      io.out("  check:     svc verify -d <dir>, which must print this head");
      io.out(
        "  excluded:  configuration, manifests, policy, key file and signing key; back them up separately",
      );
    });
};

async function writeBackup(context: CommandContext, flags: CommandFlags, out: string): Promise<LedgerHead> {
  if ((await stat(out).catch(() => undefined)) !== undefined) throw isThere(out);
  // Created next to the archive, on a file system that needs the space anyway.
  const scratch = await mkdtemp(join(dirname(out), `.${basename(out)}.`)).catch((error: unknown) => {
    throw fileError(out, error);
  });
  try {
    const store = await openLedgerStore(context, flags);
    try {
      const { head, files, close } = await store.backup!(scratch);
      try {
        const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
        const archive = writeTar(files.map(entry), { mtime_ms: context.io.clock.now(), ...owner });
        if (!(await createOutFile(out, archive))) throw isThere(out);
      } finally {
        await close();
      }
      return head;
    } finally {
      await store.close();
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

const isThere = (out: string) => invalidError(`${out}: already exists; name another file`);

function entry({ name, fd, size }: BackupFile): TarEntry {
  const options = { fd, start: 0, end: size - 1, autoClose: false, highWaterMark: 1_048_576 };
  return { name, size, bytes: size === 0 ? nothing() : createReadStream("", options) };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
