/**
 * Memory that the index of a workspace shares with a helper: the expected metadata of each file that the helper looks at.
 * The helper lists the files whose metadata differs.
 */

/** Words of `control`. */
export const STAT_CONTROL = { ready: 0, done: 1, found: 2 } as const;
/** Numbers for each file: times, size, inode. */
export const STAT_FIELDS = 4;
/** Instead of a size: nothing to look at. */
export const NO_FILE = -1;

export interface StatShare {
  control: SharedArrayBuffer;
  metadata: SharedArrayBuffer;
  differing: SharedArrayBuffer;
}

/** Paths of files that are new to the helper, or the order to look at the first files. */
export type StatMessage = { add: { slot: number; full: string }[] } | { look: number; round: number };

export const createStatShare = (files: number): StatShare => ({
  control: new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT),
  metadata: new SharedArrayBuffer(files * STAT_FIELDS * Float64Array.BYTES_PER_ELEMENT),
  differing: new SharedArrayBuffer(files * Int32Array.BYTES_PER_ELEMENT),
});
