/** Room on the disk of the data folder. */
import { statfs } from "node:fs/promises";
import { messageOf } from "../../kernel/errors.ts";
import { type DoctorFinding, fail, ok, type World, warn } from "./finding.ts";
import { nearestExisting } from "./place.ts";

const DISK = "disk";
const MIB = 1_048_576;
const FEW_BYTES = 1_024 * MIB;
const TOO_FEW_BYTES = 64 * MIB;
const FEW_FILES = 1_000;

interface Room {
  free_bytes: number;
  /** How many more files fit; null where the file system does not count them. */
  free_files: number | null;
}

export async function checkDisk({ settings }: World): Promise<DoctorFinding[]> {
  const place = await nearestExisting(settings.data);
  try {
    const { bavail, bsize, files, ffree } = await statfs(place);
    return [roomFinding({ free_bytes: bavail * bsize, free_files: files === 0 ? null : ffree }, place)];
  } catch (error) {
    return [warn(DISK, `the space of ${place} cannot be read: ${messageOf(error)}`, "look with df")];
  }
}

export function roomFinding({ free_bytes, free_files }: Room, place: string): DoctorFinding {
  const shown =
    free_bytes >= 10 * 1_024 * MIB
      ? `${Math.floor(free_bytes / 1_024 / MIB)} GiB`
      : `${Math.floor(free_bytes / MIB)} MiB`;
  const text = `${shown} free at ${place}`;
  const fix = "make room; on a full disk every request is answered with 503";
  if (free_bytes < TOO_FEW_BYTES) return fail(DISK, text, fix);
  if (free_bytes < FEW_BYTES) return warn(DISK, text, fix);
  if (free_files !== null && free_files < FEW_FILES) {
    return warn(DISK, `only ${free_files} more files fit at ${place}`, "delete small files nobody needs");
  }
  return ok(DISK, text);
}
