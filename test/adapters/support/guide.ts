/** The program of a framework's guide, run as the page has it: its files written out, its output compared by the test. */
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { vi } from "vitest";
import { ROOT } from "../../support/files.ts";
import { tempDir } from "../../support/tmp.ts";

/**
 * Puts a substitute for the reader's own model where the program finds it, or where the environment names it; `installed` has the
 * packages that the program imports.
 */
export async function runGuide(
  name: string,
  model: unknown,
  { installed = ROOT, settings = {} }: { installed?: string; settings?: Record<string, string> } = {},
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
  writeFileSync(join(folder, "agent.ts"), program);
  writeFileSync(join(folder, "model.ts"), "export const { model } = globalThis;\n");
  symlinkSync(join(installed, "node_modules"), join(folder, "node_modules"));
  const lines: string[] = [];
  const log = vi.spyOn(console, "log").mockImplementation((...words) => void lines.push(words.join(" ")));
  const home = process.cwd();
  process.chdir(folder);
  Object.assign(globalThis, { model });
  const environment = { ...process.env };
  Object.assign(process.env, settings);
  try {
    await import(join(folder, "agent.ts"));
  } finally {
    process.env = environment;
    process.chdir(home);
    log.mockRestore();
  }
  return { printed: `${lines.join("\n")}\n`, shown: block("node agent.ts") };
}
