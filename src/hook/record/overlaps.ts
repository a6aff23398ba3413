/**
 * Which calls run at the same time, and the paths that each may write by its class. A path that two of them may write cannot be
 * attributed to one.
 */

/** A command may write its workspace, a build its output there, a read nothing, an edit the files that it names. */
export type CallWrites = { root: string; does: CommandWrites } | { files: readonly string[] };
export type CommandWrites = "write" | "build" | "read";

/** The paths that others may have written while a call ran. */
export interface OtherWrites {
  /** Everything: another command ran. */
  all: boolean;
  /** The output of builds: another build ran. */
  output: boolean;
  /** Full paths: edits of these files ran. */
  files: Set<string>;
}

export interface OverlappingCall {
  writes: CallWrites;
  others: OtherWrites;
}

/** Begins a call while the given ones run, and marks the overlap in each. */
export function overlapWith(running: Iterable<OverlappingCall>, writes: CallWrites): OverlappingCall {
  const call = { writes, others: { all: false, output: false, files: new Set<string>() } };
  for (const other of running) {
    meet(call, other.writes);
    meet(other, writes);
  }
  return call;
}

function meet({ writes: own, others }: OverlappingCall, writes: CallWrites): void {
  if ("files" in writes) for (const file of writes.files) others.files.add(file);
  else if (writes.does === "read" || !reaches(own, writes.root)) return;
  else if (writes.does === "build") others.output = true;
  else others.all = true;
}

/** Whether a command in the directory can change what the call writes. */
const reaches = (writes: CallWrites, root: string): boolean =>
  "root" in writes ? isRelated(writes.root, root) : writes.files.some((file) => file.startsWith(`${root}/`));

const isRelated = (a: string, b: string): boolean =>
  `${a}/`.startsWith(`${b}/`) || `${b}/`.startsWith(`${a}/`);
