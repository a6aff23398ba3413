/** `svc policy check|test|diff|suggest`: validates, tests and compares policies, and drafts one from what happened. */
import { resolve } from "node:path";
import { suggest } from "../../app/operations/captures.ts";
import { diffPolicy } from "../../app/operations/policy-diff.ts";
import { labelsOf } from "../../app/operations/simulate/jobs.ts";
import { SUGGESTION_PERIOD } from "../../app/operations/simulate/suggest.ts";
import { doReading, type Labelled } from "../../app/sandbox/readings.ts";
import { readTextFile } from "../../config/files.ts";
import { loadManifests } from "../../config/manifest-source.ts";
import { plural } from "../../kernel/words.ts";
import { compilePolicy } from "../../model/policy/compile.ts";
import { loadPolicy } from "../../model/policy/load.ts";
import type { ClaimResult } from "../../model/policy/prove/claims.ts";
import { type DiffClass, type PolicyDiff, type Side, toldTools } from "../../model/policy/prove/diff.ts";
import type { PolicyDoc } from "../../model/policy/schema.ts";
import { runPolicyTests } from "../../model/policy/tests.ts";
import { ATTENTION, type Context, type Exit, globalOptions, type Register } from "../context.ts";
import { partsOf } from "../door.ts";
import { printable } from "../io.ts";
import { warnMisfits } from "../misfits.ts";
import { withEgress } from "../with-egress.ts";
import { readPolicy } from "./simulate.ts";

export const registerPolicy: Register = (program, context) => {
  const { io } = context;
  const group = program.command("policy").description("policies");

  globalOptions(
    group.command("check <file>").description("validate a policy and prove its claims; lists every problem"),
  ).action((file: string, flags: Record<string, unknown>) => checkFile(context, flags, file));

  globalOptions(
    group.command("test <file>").description("run the tests that a policy carries, and prove its claims"),
  ).action((file: string, flags: Record<string, unknown>) => testFile(context, flags, file));

  globalOptions(
    group
      .command("diff <a> <b>")
      .description("every class of call that b decides differently from a; exits 2 when b is looser"),
  )
    .option("--json", "print the comparison as JSON")
    .action(async (a: string, b: string, flags: Record<string, unknown>) => {
      const [was, is] = [await readPolicy(io, a), await readPolicy(io, b)];
      const diff = context.isRemote(flags)
        ? await context.withDoor(flags, (door) => door.perform(diffPolicy, { a: was.text, b: is.text }))
        : doReading({
            read: "policy_diff",
            a: was,
            b: is,
            labels: await manifestLabels(context, flags),
            now_ms: io.clock.now(),
          });
      if (flags["json"]) io.out(JSON.stringify(diff, null, 2));
      else for (const line of describeDiff(diff as PolicyDiff)) io.out(line);
      if (diff.looser.length > 0 || !diff.complete) context.done(ATTENTION);
    });

  globalOptions(
    group
      .command("suggest")
      .description(
        "draft a policy from the captured calls, with the evidence for each line; changes nothing",
      ),
  )
    .option("--since <period>", "how far back to look: a period such as 2d, or a date", SUGGESTION_PERIOD)
    .option("--actor <name>", "only from the calls of this agent")
    .action((flags: Record<string, string>) =>
      context.withData(flags, async (door) => {
        const draft = await door.perform(suggest, { since: flags["since"]!, actor: flags["actor"] });
        for await (const part of partsOf(draft)) await io.write(part);
      }),
    );
};

async function checkFile(context: Context, flags: Record<string, unknown>, file: string): Promise<void> {
  const { io } = context;
  const text = await readTextFile(resolve(io.cwd, file));
  const doc = loadPolicy(text, file);
  await warnMisfits(io, context.settings(flags), { policy: doc });
  const results = await printClaims(context, flags, doc, { text, file });
  const counts = `${plural(doc.rules?.length ?? 0, "rule")}, ${plural(doc.tests?.length ?? 0, "test")}`;
  io.out(claimsProblem(results) ?? `ok: ${counts}`);
  context.done(claimsExit(results));
}

async function testFile(context: Context, flags: Record<string, unknown>, file: string): Promise<void> {
  const { io } = context;
  const text = await readTextFile(resolve(io.cwd, file));
  const policy = compilePolicy(loadPolicy(text, file));
  await warnMisfits(io, context.settings(flags), { policy: policy.doc });
  const labels = new Map(await manifestLabels(context, flags));
  const manifestFor = (tool: string) => labels.get(tool) ?? null;
  const results = runPolicyTests(policy, { manifestFor, now_ms: io.clock.now() });
  for (const result of results) {
    if (result.ok) io.out(`ok  ${printable(result.name)}`);
    else io.out(`FAIL ${printable(result.name)}: expected ${result.expected}, got ${result.got}`);
  }
  const failed = results.filter((result) => !result.ok).length;
  io.out(failed === 0 ? `${results.length} passed` : `${results.length - failed} passed, ${failed} failed`);
  const claims = await printClaims(context, flags, policy.doc, { text, file });
  const problem = claimsProblem(claims);
  if (problem !== null) io.out(problem);
  context.done(failed > 0 ? 1 : claimsExit(claims));
}

/** A line for each claim, and a second one for a counterexample. */
async function printClaims(
  context: Context,
  flags: Record<string, unknown>,
  { claims }: PolicyDoc,
  given: { text: string; file: string },
): Promise<ClaimResult[]> {
  if (claims === undefined) return [];
  const labels = await manifestLabels(context, flags);
  const results = doReading({ read: "claims", ...given, labels, now_ms: context.io.clock.now() });
  for (const result of results) for (const line of describeClaim(result)) context.io.out(line);
  return results;
}

/** 1 where a claim has a counterexample, 2 where one could not be decided. */
function claimsExit(results: readonly ClaimResult[]): Exit {
  if (results.some(({ result }) => result === "counterexample")) return 1;
  return results.some(({ result }) => result === "incomplete") ? ATTENTION : 0;
}

/** The closing line where not every claim is proved. */
function claimsProblem(results: readonly ClaimResult[]): string | null {
  const count = (wanted: ClaimResult["result"]) => results.filter(({ result }) => result === wanted).length;
  const [wrong, open] = [count("counterexample"), count("incomplete")];
  const of = `of ${plural(results.length, "claim")}`;
  if (wrong > 0) return `not ok: ${wrong} ${of} ${wrong === 1 ? "has" : "have"} a counterexample`;
  return open > 0 ? `incomplete: ${open} ${of} could not be decided` : null;
}

function describeClaim({ name, result, at_least, counterexample, reason }: ClaimResult): string[] {
  const title = `${result}  ${printable(name)}`;
  if (counterexample === undefined) return [reason === undefined ? title : `${title}: ${printable(reason)}`];
  const { input, got, rules } = counterexample;
  const by = rules.length === 0 ? "" : ` by ${rules.join(", ")}`;
  return [
    `${title}: expected at least ${at_least}, got ${got}${by}`,
    `  ${printable(JSON.stringify(input))}`,
  ];
}

function describeDiff(diff: PolicyDiff): string[] {
  const lines = (["looser", "stricter", "other"] as const).flatMap((direction) =>
    diff[direction].flatMap((one) => describeClass(direction, one)),
  );
  const { tools, of, reasons } = diff.covered;
  if (!diff.complete) lines.push(`incomplete: ${tools} of ${of} classes of tools were gone through`);
  for (const reason of reasons) lines.push(`  ${printable(reason)}`);
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
    `${direction}: ${from}${by(a.rules)} becomes ${to}${by(b.rules)} (${toldTools(one).map(printable).join(", ")})`,
    `  for example ${printable(JSON.stringify(example))}`,
    ...(counted ?? []).map((one) => `  after ${printable(one)}`),
    ...toldSide("was", a),
    ...toldSide("is", b),
  ];
}

function toldSide(when: string, { approval, reasons }: Side): string[] {
  const told = approval ?? reasons.join("; ");
  return told === "" ? [] : [`  ${when}: ${printable(told)}`];
}

/** Rules may match on labels, which only manifests know; without any, those are unknown. */
async function manifestLabels(context: Context, flags: Record<string, unknown>): Promise<Labelled[]> {
  const settings = context.settings(flags);
  const { manifests: path } = settings;
  return labelsOf(await withEgress(settings, path, (egress) => loadManifests({ path, egress })));
}
