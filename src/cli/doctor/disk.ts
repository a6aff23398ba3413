/** Checks the free space on the disk of the data directory. */
import { statfs } from "node:fs/promises";
import { messageOf } from "../../kernel/errors.ts";
import { type CheckContext, type DoctorFinding, failFinding, okFinding, warnFinding } from "./finding.ts";
import { nearestExisting } from "./paths.ts";

const DISK = "disk";
const MIB = 1_048_576;
const FEW_BYTES = 1_024 * MIB;
const TOO_FEW_BYTES = 64 * MIB;
const FEW_FILES = 1_000;

interface Room {
  free_bytes: number;
  /** Number of files that can still be created, or null if the file system does not report it. */
  free_files: number | null;
}

export async function checkDisk({ settings }: CheckContext): Promise<DoctorFinding[]> {
  const place = await nearestExisting(settings.data);
  try {
    const { bavail, bsize, files, ffree } = await statfs(place);
    return [diskSpaceFinding({ free_bytes: bavail * bsize, free_files: files === 0 ? null : ffree }, place)];
  } catch (error) {
    return [warnFinding(DISK, `the space of ${place} cannot be read: ${messageOf(error)}`, "check with df")];
  }
}

export function diskSpaceFinding({ free_bytes, free_files }: Room, place: string): DoctorFinding {
  const shown =
    free_bytes >= 10 * 1_024 * MIB
      ? `${Math.floor(free_bytes / 1_024 / MIB)} GiB`
      : `${Math.floor(free_bytes / MIB)} MiB`;
  const text = `${shown} free at ${place}`;
  const fix = "free some space; on a full disk every request fails with 503";
  if (free_bytes < TOO_FEW_BYTES) return failFinding(DISK, text, fix);
  if (free_bytes < FEW_BYTES) return warnFinding(DISK, text, fix);
  if (free_files !== null && free_files < FEW_FILES) {
    return warnFinding(
      DISK,
      `only ${free_files} more files fit at ${place}`,
      "delete small files that are no longer needed",
    );
  }
  return okFinding(DISK, text);
}
