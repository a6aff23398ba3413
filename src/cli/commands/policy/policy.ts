/** `svc policy new|check|test|diff|suggest`: creates, validates, tests and compares policies, and drafts one from captured calls. */
import { resolve } from "node:path";
import { readTextFile } from "../../../config/files.ts";
import { loadManifests } from "../../../config/manifest-source.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import { suggestDraftPolicy } from "../../../operations/retention/captures.ts";
import { labelsOf } from "../../../operations/simulate/jobs.ts";
import { diffPolicy } from "../../../operations/simulate/policy-diff.ts";
import { SUGGESTION_PERIOD } from "../../../operations/simulate/suggest.ts";
import { type LabelledTool, runParseTask } from "../../../operations/worker/parse-tasks.ts";
import { compilePolicy } from "../../../rules/policy/compile.ts";
import { loadPolicy } from "../../../rules/policy/load.ts";
import type { ClaimResult } from "../../../rules/policy/prove/claims.ts";
import {
  type DiffClass,
  type DiffSide,
  describeTools,
  type PolicyDiff,
} from "../../../rules/policy/prove/diff.ts";
import type { PolicyDoc } from "../../../rules/policy/schema.ts";
import { runPolicyTests } from "../../../rules/policy/tests/tests.ts";
import {
  type CommandContext,
  EXIT_NEEDS_ATTENTION,
  type ExitCode,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { escapeControls } from "../../io.ts";
import { documentChunks } from "../../operation-client.ts";
import { withEgress } from "../../with-egress.ts";
import { warnLintProblems } from "./lint-warnings.ts";
import { registerNewPolicy } from "./new-policy.ts";
import { readPolicy } from "./simulate.ts";

export const registerPolicy: RegisterCommand = (program, context) => {
  const { io } = context;
  const group = program.command("policy").description("Check, test and compare policies");

  registerNewPolicy(group, context);

  globalOptions(group.command("check <file>").description("Validate a policy and prove its claims")).action(
    (file: string, flags: Record<string, unknown>) => checkFile(context, flags, file),
  );

  globalOptions(group.command("test <file>").description("Run a policy's tests and prove its claims")).action(
    (file: string, flags: Record<string, unknown>) => testFile(context, flags, file),
  );

  globalOptions(
    group
      .command("diff <a> <b>")
      .description("Compare two policies over all calls")
      .addHelpText("after", "\nExits with 2 if <b> is looser than <a> for any call."),
  )
    .option("--json", "print the comparison as JSON")
    .action(async (a: string, b: string, flags: Record<string, unknown>) => {
      const [was, is] = [await readPolicy(io, a), await readPolicy(io, b)];
      const diff = context.isRemote(flags)
        ? await context.withDoor(flags, (door) => door.perform(diffPolicy, { a: was.text, b: is.text }))
        : runParseTask({
            read: "policy_diff",
            a: was,
            b: is,
            labels: await manifestLabels(context, flags),
            now_ms: io.clock.now(),
          });
      if (flags["json"]) io.out(JSON.stringify(diff, null, 2));
      else for (const line of describeDiff(diff as PolicyDiff)) io.out(line);
      if (diff.looser.length > 0 || !diff.complete) context.done(EXIT_NEEDS_ATTENTION);
    });

  globalOptions(group.command("suggest").description("Draft a policy from captured calls"))
    .option("--since <period>", "how far back to look: a period such as 2d, or a date", SUGGESTION_PERIOD)
    .option("--actor <name>", "only calls of this agent")
    .action((flags: Record<string, string>) =>
      context.withData(flags, async (door) => {
        const draft = await door.perform(suggestDraftPolicy, {
          since: flags["since"]!,
          actor: flags["actor"],
        });
        for await (const part of documentChunks(draft)) await io.write(part);
      }),
    );
};

async function checkFile(
  context: CommandContext,
  flags: Record<string, unknown>,
  file: string,
): Promise<void> {
  const { io } = context;
  const text = await readTextFile(resolve(io.cwd, file));
  const doc = loadPolicy(text, file);
  await warnLintProblems(io, context.settings(flags), { policy: doc });
  const results = await printClaims(context, flags, doc, { text, file });
  const counts = `${formatCountOf(doc.rules?.length ?? 0, "rule")}, ${formatCountOf(doc.tests?.length ?? 0, "test")}`;
  io.out(claimsProblem(results) ?? `ok: ${counts}`);
  context.done(claimsExit(results));
}

async function testFile(
  context: CommandContext,
  flags: Record<string, unknown>,
  file: string,
): Promise<void> {
  const { io } = context;
  const text = await readTextFile(resolve(io.cwd, file));
  const policy = compilePolicy(loadPolicy(text, file));
  await warnLintProblems(io, context.settings(flags), { policy: policy.doc });
  const labels = new Map(await manifestLabels(context, flags));
  const manifestFor = (tool: string) => labels.get(tool) ?? null;
  const results = runPolicyTests(policy, { manifestFor, now_ms: io.clock.now() });
  for (const result of results) {
    if (result.ok) io.out(`ok  ${escapeControls(result.name)}`);
    else io.out(`FAIL ${escapeControls(result.name)}: expected ${result.expected}, got ${result.got}`);
  }
  const failed = results.filter((result) => !result.ok).length;
  io.out(failed === 0 ? `${results.length} passed` : `${results.length - failed} passed, ${failed} failed`);
  const claims = await printClaims(context, flags, policy.doc, { text, file });
  const problem = claimsProblem(claims);
  if (problem !== null) io.out(problem);
  context.done(failed > 0 ? 1 : claimsExit(claims));
}

/** Prints a line for each claim, and a second one for a counterexample. */
async function printClaims(
  context: CommandContext,
  flags: Record<string, unknown>,
  { claims }: PolicyDoc,
  given: { text: string; file: string },
): Promise<ClaimResult[]> {
  if (claims === undefined) return [];
  const labels = await manifestLabels(context, flags);
  const results = runParseTask({ read: "claims", ...given, labels, now_ms: context.io.clock.now() });
  for (const result of results) for (const line of describeClaim(result)) context.io.out(line);
  return results;
}

/** Returns 1 if a claim has a counterexample, 2 if one could not be decided. */
function claimsExit(results: readonly ClaimResult[]): ExitCode {
  if (results.some(({ result }) => result === "counterexample")) return 1;
  return results.some(({ result }) => result === "incomplete") ? EXIT_NEEDS_ATTENTION : 0;
}

/** Last line of the output if not every claim is proved. */
function claimsProblem(results: readonly ClaimResult[]): string | null {
  const count = (wanted: ClaimResult["result"]) => results.filter(({ result }) => result === wanted).length;
  const [wrong, open] = [count("counterexample"), count("incomplete")];
  const of = `of ${formatCountOf(results.length, "claim")}`;
  if (wrong > 0) return `not ok: ${wrong} ${of} ${wrong === 1 ? "has" : "have"} a counterexample`;
  return open > 0 ? `incomplete: ${open} ${of} could not be decided` : null;
}

function describeClaim({ name, result, at_least, counterexample, reason }: ClaimResult): string[] {
  const title = `${result}  ${escapeControls(name)}`;
  if (counterexample === undefined)
    return [reason === undefined ? title : `${title}: ${escapeControls(reason)}`];
  const { input, got, rules } = counterexample;
  const by = rules.length === 0 ? "" : ` by ${rules.join(", ")}`;
  return [
    `${title}: expected at least ${at_least}, got ${got}${by}`,
    `  ${escapeControls(JSON.stringify(input))}`,
  ];
}

function describeDiff(diff: PolicyDiff): string[] {
  const lines = (["looser", "stricter", "other"] as const).flatMap((direction) =>
    diff[direction].flatMap((one) => describeClass(direction, one)),
  );
  const { tools, of, reasons } = diff.covered;
  if (!diff.complete) lines.push(`incomplete: ${tools} of ${of} classes of tools were compared`);
  for (const reason of reasons) lines.push(`  ${escapeControls(reason)}`);
  const total = diff.looser.length + diff.stricter.length + diff.other.length;
  if (total === 0 && diff.complete) return ["the same decision for every call"];
  return [
    ...lines,
    `${diff.looser.length} looser, ${diff.stricter.length} stricter, ${diff.other.length} other`,
  ];
}

function describeClass(direction: string, one: DiffClass): string[] {
  const { from, to, a, b, example, counted } = one;
  const by = (rules: readonly string[]) => (rules.length === 0 ? "" : ` by ${rules.join(", ")}`);
  return [
    `${direction}: ${from}${by(a.rules)} becomes ${to}${by(b.rules)} (${describeTools(one).map(escapeControls).join(", ")})`,
    `  for example ${escapeControls(JSON.stringify(example))}`,
    ...(counted ?? []).map((one) => `  after ${escapeControls(one)}`),
    ...describeSide("was", a),
    ...describeSide("is", b),
  ];
}

function describeSide(when: string, { approval, reasons }: DiffSide): string[] {
  const described = approval ?? reasons.join("; ");
  return described === "" ? [] : [`  ${when}: ${escapeControls(described)}`];
}

/** Labels of the configured manifests, on which rules can match. Empty without manifests. */
async function manifestLabels(
  context: CommandContext,
  flags: Record<string, unknown>,
): Promise<LabelledTool[]> {
  const settings = context.settings(flags);
  const { manifests: path } = settings;
  return labelsOf(await withEgress(settings, path, (egress) => loadManifests({ path, egress })));
}
