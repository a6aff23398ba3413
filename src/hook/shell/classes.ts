/** Classes of shell commands. */

/** Ordered from harmless to critical. A command gets the class of its most critical part. */
const CLASSES = ["read", "build", "write", "vcs", "network", "packages", "unknown", "destructive"] as const;
export type ShellClass = (typeof CLASSES)[number];

export const worstClass = (classes: readonly ShellClass[]): ShellClass =>
  CLASSES[Math.max(0, ...classes.map((one) => CLASSES.indexOf(one)))]!;
