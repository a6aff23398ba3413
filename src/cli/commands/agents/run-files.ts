/** Files before and after a run: its program, and files that would run on their own. */
import { chmodSync, cpSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { messageOf, SvcError } from "../../../kernel/errors.ts";
import type { CommandContext } from "../../context.ts";
import { escapeControls } from "../../io.ts";

/** Words that name programs: the command after `env` and its assignments, and the script after `node`. */
export function programWords(command: readonly string[]): string[] {
  const [first = "", ...rest] = command;
  const name = basename(first);
  if (name === "env") {
    const at = rest.findIndex((word) => !/^[A-Za-z_]\w*=/.test(word));
    return at < 0 ? [first] : [first, ...programWords(rest.slice(at))];
  }
  const [script] = rest;
  return name === "node" && script !== undefined && !script.startsWith("-") ? [first, script] : [first];
}

/** Moves new files that would run on their own later, so that a person can check them first. */
export function moveAway(
  { io }: CommandContext,
  workspace: string,
  added: readonly string[],
  into: string,
): void {
  if (added.length === 0) return;
  for (const path of added) {
    const to = join(into, relative(workspace, path));
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    try {
      renameSync(path, to);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EXDEV")
        throw new SvcError("unavailable", messageOf(error));
      cpSync(path, to, { recursive: true, verbatimSymlinks: true });
      rmSync(path, { recursive: true });
    }
  }
  chmodSync(into, 0o700);
  io.err(`svc run: ${added.length} new files would run on their own; check them in ${escapeControls(into)}`);
  for (const path of added) io.err(`  ${escapeControls(relative(workspace, path))}`);
}
