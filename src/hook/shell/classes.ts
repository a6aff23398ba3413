/** What a shell command can be, as far as its words tell. */

/** From the harmless to what a person should look at; a command is as bad as its worst part. */
const CLASSES = ["read", "build", "write", "vcs", "network", "packages", "unknown", "destructive"] as const;
export type ShellClass = (typeof CLASSES)[number];

export const worst = (classes: readonly ShellClass[]): ShellClass =>
  CLASSES[Math.max(0, ...classes.map((one) => CLASSES.indexOf(one)))]!;
