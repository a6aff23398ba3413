/** The first line of a draft, by which editors complete and check it against the schema that came with the package. */
import { fileURLToPath } from "node:url";

export function schemaLine(kind: "manifest" | "policy" | "config"): string {
  const file = fileURLToPath(new URL(`../../schemas/${kind}.schema.json`, import.meta.url));
  return `# yaml-language-server: $schema=${file}\n`;
}
