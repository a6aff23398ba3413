/** Policies as text: the one in force as its author wrote it, and what is to be said about another. */
import { stringify } from "yaml";
import type { App } from "../../app/app.ts";
import { readTextFile } from "../../config/files.ts";
import { ProblemsError } from "../../kernel/errors.ts";
import { compilePolicy, type Policy } from "../../model/policy/compile.ts";
import { loadPolicy } from "../../model/policy/load.ts";
import { type PolicyTestResult, runPolicyTests } from "../../model/policy/tests.ts";
import { registryRules } from "../../registry/rules.ts";
import { type DiffLine, diffLines } from "../diff.ts";

/** The text that is in force: with its comments where the file still says the same, else made from the rules. */
export async function activeText(app: App): Promise<string> {
  const { policy } = app.core.rules();
  const { settings } = app;
  const sources = [
    async () => (await registryRules(settings.registry).activePolicy())?.text,
    async () => (settings.policy === null ? undefined : readTextFile(settings.policy)),
  ];
  for (const read of sources) {
    try {
      const text = await read();
      if (text !== undefined && compilePolicy(loadPolicy(text, "policy")).hash === policy.hash) return text;
    } catch {
      // Edited since, and it does not load: what is in force is no longer that text.
    }
  }
  return stringify(policy.doc);
}

export type Checked =
  | { ok: false; problems: readonly string[] }
  | { ok: true; policy: Policy; tests: PolicyTestResult[]; diff: DiffLine[] };

/** Validates a policy, runs the tests it carries, and compares it with the one in force by what both say. */
export function checkPolicy(app: App, text: string): Checked {
  const { policy: active, manifests } = app.core.rules();
  try {
    const policy = compilePolicy(loadPolicy(text, "policy"));
    const tests = runPolicyTests(policy, (tool) => {
      const found = manifests.active(tool);
      return found === undefined
        ? null
        : { effect: found.effect, data_class: found.risk.data_class, blast_radius: found.risk.blast_radius };
    });
    return { ok: true, policy, tests, diff: diffLines(stringify(active.doc), stringify(policy.doc)) };
  } catch (error) {
    if (error instanceof ProblemsError) return { ok: false, problems: error.problems };
    throw error;
  }
}
