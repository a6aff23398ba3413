/** `svc policy new`: writes a first policy from questions on the terminal, or from an example, without a tool server. */
import { existsSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { packageFile } from "../../../child-process/package-files.ts";
import { conflictError, invalidError } from "../../../kernel/errors.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import { compilePolicy } from "../../../rules/policy/compile.ts";
import { loadPolicy } from "../../../rules/policy/load.ts";
import { runPolicyTests } from "../../../rules/policy/tests/tests.ts";
import type { CommandContext } from "../../context.ts";
import { escapeControls } from "../../io.ts";
import { packagedExample } from "../packaged-example.ts";
import { askForPolicy, policyFromAnswers } from "./policy-questions.ts";
import { schemaLine } from "./schema-line.ts";

const EXAMPLES = fileURLToPath(packageFile("examples/policies"));

interface NewPolicyFlags {
  out: string;
  /** True without a name. */
  example?: string | true;
  force?: boolean;
}

export function registerNewPolicy(group: Command, context: CommandContext): void {
  group
    .command("new")
    .description("Write a first policy from questions or an example")
    .option("--example [name]", "copy this example instead of asking; without a name, list the examples")
    .option("--out <file>", "where to write it", "policy.yaml")
    .option("--force", "replace a file that is already there")
    .action((flags: NewPolicyFlags) => newPolicy(context, flags));
}

async function newPolicy({ io }: CommandContext, { out, example, force }: NewPolicyFlags): Promise<void> {
  const file = resolve(io.cwd, out);
  if (existsSync(file) && force !== true)
    throw conflictError(
      "file_exists",
      `already there: ${out}; write elsewhere with --out, or replace it with --force`,
    );
  const text = example === undefined ? await askedText(io) : await exampleText(example);
  // The file that is written loads, and its tests pass.
  const policy = compilePolicy(loadPolicy(text, out));
  const results = runPolicyTests(policy, { manifestFor: () => null, now_ms: io.clock.now() });
  const failed = results.filter(({ ok }) => !ok);
  if (failed.length > 0)
    throw invalidError(`the policy's own tests fail: ${failed.map(({ name }) => name).join(", ")}`);
  await writeFile(file, schemaLine("policy") + text, { flag: force === true ? "w" : "wx" });
  const rules = formatCountOf(policy.doc.rules?.length ?? 0, "rule");
  io.out(`wrote ${escapeControls(out)}: ${rules}, ${formatCountOf(results.length, "test")} passed`);
  io.out("");
  io.out("Next:");
  io.out(`  1. edit ${escapeControls(out)}; an editor with a YAML language server explains each field`);
  io.out(`  2. svc policy test ${escapeControls(out)}`);
  io.out(`  3. svc server --policy ${escapeControls(out)}`);
}

async function askedText({ ask, err }: CommandContext["io"]): Promise<string> {
  if (ask === undefined)
    throw invalidError(
      `no terminal to ask on; pass --example <name>, one of: ${(await exampleNames()).join(", ")}`,
    );
  return policyFromAnswers(await askForPolicy(ask, err));
}

async function exampleText(name: string | true): Promise<string> {
  const names = await exampleNames();
  if (name === true) throw invalidError(`--example: choose one of: ${names.join(", ")}`);
  if (!names.includes(name))
    throw invalidError(`--example: unknown example; choose one of: ${names.join(", ")}`);
  return packagedExample(`examples/policies/${name}.yaml`);
}

async function exampleNames(): Promise<string[]> {
  const files = await readdir(EXAMPLES);
  return files.flatMap((file) => /^(.+)\.yaml$/.exec(file)?.[1] ?? []).sort();
}
