/** Processes that tests start by the dozen, only to kill them: from JavaScript, which starts in a third of the time. */
import { join } from "node:path";
import { compiledFolder } from "../../stress/compiled.mjs";

let folder: string | undefined;

/** Where the compiled form of a source is, which `stress/tsconfig.json` has to name; its path is from the root. */
export function compiled(source: string): string {
  folder ??= compiledFolder();
  return join(folder, source.replace(/\.ts$/, ".js"));
}
