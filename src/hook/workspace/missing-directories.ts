/** Which directories an edit creates. */
import { existsSync } from "node:fs";
import { dirname } from "node:path";

/** Directories that writing this file would create, each with a trailing slash. */
export function missingDirectories(path: string): string[] {
  const folders: string[] = [];
  for (let folder = dirname(path); !existsSync(folder); folder = dirname(folder)) folders.push(`${folder}/`);
  return folders;
}
