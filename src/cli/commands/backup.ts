/** `svc backup --out <file>`: a whole copy of the data of one moment, while the service runs, as one tar archive. */
import { createReadStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileError } from "../../config/files.ts";
import { createOutFile } from "../../evidence/out-file.ts";
import { invalid } from "../../kernel/errors.ts";
import { shellQuoted } from "../../kernel/shell.ts";
import { type TarEntry, tar } from "../../kernel/tar.ts";
import type { Head } from "../../ledger/record.ts";
import type { BackupFile } from "../../port/store.ts";
import { type Context, type Flags, globalOptions, NEEDS_DATA, type Register } from "../context.ts";
import { doesWithoutStore } from "../data-folder.ts";
import { printable } from "../io.ts";
import { openLedgerStore } from "./verify.ts";

export const registerBackup: Register = (program, context) => {
  const { io } = context;
  globalOptions(
    program.command("backup").description("copy the data of a files or sqlite store while the service runs"),
  )
    .requiredOption("--out <file>", "where to write the archive (tar); a file that is there is not replaced")
    .option("--json", "print the result as JSON")
    .action(async (flags: Flags & { out: string }) => {
      if (context.isRemote(flags)) throw invalid(NEEDS_DATA);
      const settings = context.settings(flags);
      if (settings.store === "postgres")
        throw invalid(
          "a PostgreSQL database is backed up with its own tools, pg_dump or pg_basebackup: docs/guides/backups.md says how",
        );
      doesWithoutStore("backup", settings);
      const out = resolve(io.cwd, flags.out);
      const { records, hash: head } = await writeBackup(context, flags, out);
      if (flags["json"]) return io.out(JSON.stringify({ file: out, store: settings.store, records, head }));
      io.out(`wrote ${printable(out)}: ${settings.store} store, ${records} records, head ${head}`);
      io.out(`  restore:   mkdir -m 700 <folder> && tar -xf ${printable(shellQuoted(out))} -C <folder>`);
      io.out("  check:     svc verify -d <folder>, which must name this head");
      io.out("  not in it: configuration, manifests, policy, key file and signing key; keep those apart");
    });
};

async function writeBackup(context: Context, flags: Flags, out: string): Promise<Head> {
  if ((await stat(out).catch(() => undefined)) !== undefined) throw isThere(out);
  // Beside the archive, where there must be room anyway.
  const scratch = await mkdtemp(join(dirname(out), `.${basename(out)}.`)).catch((error: unknown) => {
    throw fileError(out, error);
  });
  try {
    const store = await openLedgerStore(context, flags);
    try {
      const { head, files, close } = await store.backup!(scratch);
      try {
        const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
        const archive = tar(files.map(entry), { mtime_ms: context.io.clock.now(), ...owner });
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

const isThere = (out: string) =>
  invalid(`${out}: is there already, and a backup replaces nothing: name another file`);

function entry({ name, fd, size }: BackupFile): TarEntry {
  const options = { fd, start: 0, end: size - 1, autoClose: false, highWaterMark: 1_048_576 };
  return { name, size, bytes: size === 0 ? nothing() : createReadStream("", options) };
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
