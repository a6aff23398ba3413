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

/** What the calls at the same time know of a call. */
interface CallTrace {
  readonly writes: CallWrites;
  /** The call did not run after all. */
  isWithdrawn: boolean;
}

export class OverlappingCall {
  private readonly trace: CallTrace;
  private readonly peers: CallTrace[];

  /** Begins a call while the given ones run, and marks the overlap in each. */
  constructor(running: Iterable<OverlappingCall>, writes: CallWrites) {
    this.trace = { writes, isWithdrawn: false };
    const others = [...running];
    this.peers = others.map(({ trace }) => trace);
    for (const { peers } of others) peers.push(this.trace);
  }

  get writes(): CallWrites {
    return this.trace.writes;
  }

  get others(): OtherWrites {
    const others: OtherWrites = { all: false, output: false, files: new Set() };
    for (const { writes, isWithdrawn } of this.peers)
      if (!isWithdrawn) addWrites(others, this.writes, writes);
    return others;
  }

  /** The call did not run, so it wrote nothing. */
  withdraw(): void {
    this.trace.isWithdrawn = true;
  }
}

function addWrites(others: OtherWrites, own: CallWrites, writes: CallWrites): void {
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
