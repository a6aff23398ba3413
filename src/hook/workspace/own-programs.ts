/** The programs that judge the calls: this package, its Node, and the same package in a project. */
import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";

const IN_PROJECT = join("node_modules", "takeback");
/** A file that only this package has there. */
const MARK = join("bin", "carrier.pl");

/** `folders`: directories of the workspace. */
export function ownPrograms(folders: readonly string[]): string[] {
  const inProject = folders.map((folder) => join(folder, IN_PROJECT)).filter((path) => existsSync(path));
  own ??= [...ownPackage(), process.execPath];
  return [...own, ...inProject];
}

let own: string[] | undefined;

/** Found from the started file, because bundles do not know their own path in every format. */
function ownPackage(): string[] {
  const started = process.argv[1];
  if (started === undefined || !existsSync(started)) return [];
  for (let at = dirname(realpathSync(started)); dirname(at) !== at; at = dirname(at))
    if (existsSync(join(at, MARK))) return [at];
  return [];
}
