/** What the thread of a files store does: takes closed journals into `state.db`. */
import { readFileSync } from "node:fs";
import { SvcError } from "../../kernel/errors.ts";
import { applyJournal, type ClosedJournal } from "../logged/apply.ts";
import { readBase } from "../logged/checkpoint.ts";
import { openCheckpointWriter, shrink } from "../logged/checkpoint-writer.ts";
import { closeDatabase } from "../logged/connection.ts";
import { parseJournal, unitsOf } from "../logged/parse.ts";
import type { Jobs } from "../logged/side-thread.ts";
import { checkpointPath, journalName, journalPath } from "./paths.ts";

export function filesJobs(folder: string): Jobs {
  const db = openCheckpointWriter(checkpointPath(folder));
  return {
    apply: (generation: number) =>
      applyJournal(db, "files", generation, () => readClosed(folder, generation, readBase(db)!.crc)),
    shrink: () => shrink(db),
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
