/** The program of a framework's guide, run as the page has it: its files written out, its output compared by the test. */
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { vi } from "vitest";
import { ROOT } from "../../support/files.ts";
import { tempDir } from "../../support/tmp.ts";

/**
 * Puts what stands for the reader's own model where the program finds it, and a module of this folder in the place of a
 * package that is not to be run. `installed` has the packages that the program imports.
 */
export async function runGuide(
  name: string,
  model: unknown,
  { installed = ROOT, stand_ins = {} }: { installed?: string; stand_ins?: Record<string, string> } = {},
): Promise<{ printed: string; shown: string }> {
  const page = readFileSync(join(ROOT, "docs/guides/frameworks", `${name}.md`), "utf8");
  const folder = tempDir("guide");
  const block = (heading: string) =>
    new RegExp(`\`${heading}\`[^\`]*\`\`\`\\w*\\n([^]*?)\`\`\``).exec(page)![1]!;
  for (const file of ["manifests.yaml", "policy.yaml"]) writeFileSync(join(folder, file), block(file));
  const program = block("agent.ts").replaceAll(/"takeback(?:\/([\w-]+))?"/g, (_, entry?: string) =>
    JSON.stringify(
      pathToFileURL(join(ROOT, "src", entry === undefined ? "index.ts" : `adapters/${entry}.ts`)),
    ),
  );
  const standing = Object.entries(stand_ins).reduce(
    (text, [entry, file]) => text.replace(`"${entry}"`, JSON.stringify(new URL(file, import.meta.url).href)),
    program,
  );
  writeFileSync(join(folder, "agent.ts"), standing);
  writeFileSync(join(folder, "model.ts"), "export const { model } = globalThis;\n");
  symlinkSync(join(installed, "node_modules"), join(folder, "node_modules"));
  const lines: string[] = [];
  const log = vi.spyOn(console, "log").mockImplementation((...words) => void lines.push(words.join(" ")));
  const home = process.cwd();
  process.chdir(folder);
  Object.assign(globalThis, { model });
  try {
    await import(join(folder, "agent.ts"));
  } finally {
    process.chdir(home);
    log.mockRestore();
  }
  return { printed: `${lines.join("\n")}\n`, shown: block("node agent.ts") };
}
