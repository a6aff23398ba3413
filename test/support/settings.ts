/** Settings from a configuration file in its own directory, or its problems. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type LoadOptions, loadSettings } from "../../src/config/load.ts";
import { ProblemsError } from "../../src/kernel/errors.ts";
import { tempDir } from "./tmp.ts";

export function load(yaml: string | null, options: Partial<LoadOptions> = {}) {
  const cwd = tempDir("cfg");
  if (yaml !== null) writeFileSync(join(cwd, "svc.config.yaml"), yaml);
  return { cwd, settings: loadSettings({ env: {}, cwd, ...options }) };
}

export function problems(yaml: string | null, options: Partial<LoadOptions> = {}): readonly string[] {
  try {
    load(yaml, options);
  } catch (error) {
    if (error instanceof ProblemsError) return error.problems;
    throw error;
  }
  return [];
}
