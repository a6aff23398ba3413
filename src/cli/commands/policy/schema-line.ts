/** First line of a drafted file. With it, editors complete and check the file against the packaged schema. */
import { fileURLToPath } from "node:url";
import { packageFile } from "../../../child-process/package-files.ts";

export function schemaLine(kind: "manifest" | "policy" | "config"): string {
  const file = fileURLToPath(packageFile(`schemas/${kind}.schema.json`));
  return `# yaml-language-server: $schema=${file}\n`;
}
