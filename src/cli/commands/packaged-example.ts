/** Example files of the package, as commands copy them for people. */
import { fileURLToPath } from "node:url";
import { packageFile } from "../../child-process/package-files.ts";
import { readTextFile } from "../../config/files.ts";

/** Without the line that names its schema: the copy gets its own. */
export async function packagedExample(path: string): Promise<string> {
  const text = await readTextFile(fileURLToPath(packageFile(path)));
  return text.replace(/^# yaml-language-server: .*\n/, "");
}
