/** Tracks the working directory of a script: subshells end with their directory, and a `cd` may fail. */
import { worstClass } from "../classes.ts";
import type { CommandPart, ShellWord } from "../command-parts.ts";
import type { CommandFindings } from "../findings.ts";

export class ScriptDirectories {
  /** Directories outside each open subshell. */
  private outside: { shell: number; folders: readonly string[] }[] = [];
  /** Directories before a `cd` whose success is only certain until its `&&` chain ends. */
  private left: readonly string[] | null = null;
  private readonly findings: CommandFindings;

  constructor(findings: CommandFindings) {
    this.findings = findings;
  }

  /** Starts a nested script. The returned function ends it. */
  nest(): () => void {
    const { outside, left } = this;
    [this.outside, this.left] = [[], null];
    return () => {
      for (const { folders } of this.outside.splice(0).reverse()) this.findings.folders = folders;
      [this.outside, this.left] = [outside, left];
    };
  }

  /** Updates the working directory at the start of a part. */
  enter(part: CommandPart): void {
    while (this.outside.some(({ shell }) => !part.shells.includes(shell)))
      this.findings.folders = this.outside.pop()!.folders;
    for (const shell of part.shells)
      if (!this.outside.some((one) => one.shell === shell))
        this.outside.push({ shell, folders: this.findings.folders });
    if (this.left !== null && !/^(?:&&|\|&?)$/.test(part.before)) {
      this.findings.folders = [...new Set([...this.left, ...this.findings.folders])];
      this.left = null;
    }
    // With several possible directories, it is unknown which file a relative name means.
    if (this.findings.folders.length > 1) this.findings.classes.push("unknown");
  }

  /** Sets the directory for the rest of the script. */
  moved(part: CommandPart | null, rest: readonly ShellWord[]): void {
    const { findings } = this;
    const to = findings.target(rest);
    if (to === null || part === null) {
      findings.classes.push("unknown");
      return;
    }
    const before = findings.folders;
    const here = part.nested === 0 && !part.piped && !part.reads_pipe && part.after !== "&";
    const first = /^[;\n(]?$/.test(part.before) && worstClass(findings.classes) === "read";
    if (here && first && findings.isFolder(to)) findings.folders = [to];
    else if (here && (part.after === "&&" || part.after === "")) {
      findings.folders = [to];
      this.left = [...(this.left ?? []), ...before];
    } else findings.folders = [...new Set([...before, to])];
  }
}
