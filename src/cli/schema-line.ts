/** The first line of a draft, by which editors complete and check it against the schema that came with the package. */
import { fileURLToPath } from "node:url";
import { packageFile } from "../process/package.ts";

export function schemaLine(kind: "manifest" | "policy" | "config"): string {
  const file = fileURLToPath(packageFile(`schemas/${kind}.schema.json`));
  return `# yaml-language-server: $schema=${file}\n`;
}
