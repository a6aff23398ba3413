/**
 * Programs that a call must not replace: those that decide calls (this package, its Node, and the same package in a
 * project), and those on the `PATH`.
 */
import { existsSync, realpathSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join } from "node:path";

const IN_PROJECT = join("node_modules", "takeback");
/** A file that only this package has there. */
const MARK = join("bin", "carrier.pl");

/** `folders`: directories of the workspace. */
export function ownPrograms(folders: readonly string[]): string[] {
  const inProject = folders.map((folder) => join(folder, IN_PROJECT)).filter((path) => existsSync(path));
  own ??= [...ownPackage(), process.execPath];
  return [...own, ...inProject, ...onPath(folders)];
}

/** Directories of the path. Those of a project hold its own programs, which the tables name. */
const onPath = (folders: readonly string[]): string[] =>
  (process.env["PATH"] ?? "")
    .split(delimiter)
    .filter((path) => isAbsolute(path) && !folders.some((folder) => `${path}/`.startsWith(`${folder}/`)));

let own: string[] | undefined;

/** Found from the started file, because bundles do not know their own path in every format. */
function ownPackage(): string[] {
  const started = process.argv[1];
  if (started === undefined || !existsSync(started)) return [];
  for (let at = dirname(realpathSync(started)); dirname(at) !== at; at = dirname(at))
    if (existsSync(join(at, MARK))) return [at];
  return [];
}
