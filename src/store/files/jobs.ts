/** The jobs of a files store's thread: applies closed journals to `state.db`. */
import { readFileSync } from "node:fs";
import { SvcError } from "../../kernel/errors.ts";
import { applyJournal, type ClosedJournal } from "../journal/apply.ts";
import { readBase } from "../journal/checkpoint/checkpoint.ts";
import { openCheckpointWriter, truncateWal } from "../journal/checkpoint/checkpoint-writer.ts";
import type { WorkerJobs } from "../journal/checkpoint/worker-handle.ts";
import { closeDatabase } from "../journal/connection.ts";
import { parseJournal, unitsOf } from "../journal/lines/parse-journal.ts";
import { checkpointPath, journalName, journalPath } from "./paths.ts";

export function filesJobs(folder: string): WorkerJobs {
  const db = openCheckpointWriter(checkpointPath(folder));
  return {
    apply: (generation: number) =>
      applyJournal(db, "files", generation, () => readClosed(folder, generation, readBase(db)!.crc)),
    shrink: () => truncateWal(db),
    end: () => closeDatabase(db),
  };
}

function readClosed(folder: string, generation: number, seed: number): ClosedJournal {
  const { items, rest, crc } = parseJournal(readFileSync(journalPath(folder, generation)), 0, seed);
  const [header] = items;
  if (header?.kind !== "header" || items[items.length - 1]!.kind !== "next" || rest !== "none") {
    throw new SvcError("corrupt", `${journalName(generation)} is not a closed journal`);
  }
  const units = unitsOf(items);
  const { head, size } = units[units.length - 1] ?? header;
  return { generation, units, head, size, crc };
}
