/**
 * Writes outside of the workspace. The record of the workspace does not have the replaced contents, so such a command
 * needs approval. Temporary directories hold no work.
 */
import { tmpdir } from "node:os";
import { isRegistered, resolvedDirectory, workspaceOf } from "../../workspace/registered.ts";
import { resolveLinks } from "../../workspace/resolve-links.ts";
import { SOCKET_FILES } from "../programs.ts";
import type { WordRole } from "../word-roles.ts";

/** Whether a full path is outside of the workspace around `began`, its linked work trees and temporary directories. */
export function isOutside(path: string, began: string): boolean {
  // A connection, not a file.
  if (SOCKET_FILES.test(path)) return false;
  const real = resolveLinks(path);
  const inside = [tmpdir(), "/tmp", "/var/tmp"].map(resolvedDirectory);
  return !inside.some((folder) => real.startsWith(`${folder}/`)) && isElsewhere(real, began);
}

/** Whether a directory belongs to another workspace, whose own git configuration chooses what git starts. */
export const isElsewhere = (path: string, began: string): boolean =>
  !isRegistered(resolveLinks(path), [workspaceOf(began)]);

/** They write at their last word, or into the directory of an option. */
const COPIES = /^(?:cp|ln|install)$/;
const PACKS = /^(?:tar|zip)$/;
const INTO = /^(?:-[a-zA-Z]*t|--target-directory)$/;
const ARCHIVE = /^(?:-?[a-zA-Z]*f|--file)$/;
const WITH_VALUE = /^(?:-[a-zA-Z](?=[/~.])|--[\w-]+=)(.+)$/s;

/** The words of a writing program that name what it writes. A device as an operand would be replaced. */
export function targetsOf(name: string, texts: readonly string[], roles: readonly WordRole[]): string[] {
  const plain = texts.filter((text, at) => roles[at] === "plain" && !text.startsWith("-"));
  const sticky = texts.flatMap((text) => WITH_VALUE.exec(text)?.[1] ?? []);
  const after = (option: RegExp) => texts.filter((_, at) => option.test(texts[at - 1] ?? ""));
  if (PACKS.test(name)) return [...after(ARCHIVE), ...sticky, ...(name === "zip" ? plain.slice(0, 1) : [])];
  if (!COPIES.test(name)) return [...plain, ...sticky];
  const into = [...after(INTO), ...sticky];
  // A link lets later calls write where it leads.
  const leads = name === "ln" ? plain.filter((text) => /^[/~]/.test(text)) : [];
  return into.length > 0 ? [...into, ...leads] : [...plain.slice(-1), ...leads];
}
