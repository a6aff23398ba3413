/** Classes of shell commands. */

/** Ordered from harmless to critical. A command gets the class of its most critical part. */
const CLASSES = [
  "read",
  "build",
  "format",
  "write",
  "vcs",
  "network",
  "packages",
  "unknown",
  "destructive",
] as const;
export type ShellClass = (typeof CLASSES)[number];

/** Whether a project's own tool has this class. `format`: it rewrites the project's files, unlike a build. */
export const isProjectClass = (kind: ShellClass): boolean => kind === "build" || kind === "format";

export const worstClass = (classes: readonly ShellClass[]): ShellClass =>
  CLASSES[Math.max(0, ...classes.map((one) => CLASSES.indexOf(one)))]!;
