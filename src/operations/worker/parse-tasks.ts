/**
 * Parses user-written texts: policies and manifests as YAML, their tests, and the diff to the active rules. Each
 * function is pure and takes and returns plain data, so it can run in a thread and be stopped there.
 */

import { stringify } from "yaml";
import { ProblemsError } from "../../kernel/errors.ts";
import { valueHash } from "../../kernel/hash.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import { asJson } from "../../kernel/json/json.ts";
import { type DiffLine, diffLines } from "../../kernel/text/diff.ts";
import { buildManifestDraft, withLifecycle } from "../../registry/draft.ts";
import type { ManifestFile } from "../../rules/manifest/entry.ts";
import type { ToolLabels } from "../../rules/manifest/labels.ts";
import { manifestReading } from "../../rules/manifest/load.ts";
import type { ManifestLifecycle } from "../../rules/manifest/types.ts";
import { type CompiledPolicy, compilePolicy } from "../../rules/policy/compile.ts";
import { loadPolicy } from "../../rules/policy/load.ts";
import { type ClaimResult, checkClaims } from "../../rules/policy/prove/claims.ts";
import { diffPolicies, type PolicyDiff } from "../../rules/policy/prove/diff.ts";
import { policyWarnings } from "../../rules/policy/prove/ineffective-entries.ts";
import type { SearchBudget } from "../../rules/policy/prove/search.ts";
import type { PolicyDoc, PolicyTestDoc } from "../../rules/policy/schema.ts";
import { addTestToPolicy } from "../../rules/policy/tests/add-test.ts";
import { type PolicyTrial, type TypedCall, tryCall } from "../../rules/policy/tests/policy-trial.ts";
import { type PolicyTestResult, runPolicyTests } from "../../rules/policy/tests/tests.ts";

/** Kinds of texts to parse, by their result. */
export type ParseTask =
  | { read: "policy"; text: string; file: string }
  | {
      read: "checked_policy";
      text: string;
      active: PolicyDoc | null;
      labels: readonly LabelledTool[];
      now_ms: number;
    }
  | { read: "policy_warnings"; policy: GivenPolicy; labels: readonly LabelledTool[]; now_ms: number }
  | { read: "claims"; text: string; file: string; labels: readonly LabelledTool[]; now_ms: number }
  | { read: "policy_diff"; a: GivenPolicy; b: GivenPolicy; labels: readonly LabelledTool[]; now_ms: number }
  | { read: "trial"; text: string; typed: TypedCall; labels: readonly LabelledTool[]; now_ms: number }
  | { read: "kept_test"; text: string; test: PolicyTestDoc }
  | { read: "manifests"; files: readonly ManifestFile[] }
  | { read: "draft"; given: { manifest: JsonObject } | { yaml: string } }
  | { read: "moved"; yaml: string; to: ManifestLifecycle };

/** A policy as written by its author, or the active one. */
export type GivenPolicy = { text: string; file: string } | { doc: PolicyDoc };

/** Manifest labels of a tool, for tests that name the tool. */
export type LabelledTool = readonly [tool: string, labels: ToolLabels];

export interface ReadPolicy {
  doc: PolicyDoc;
  hash: string;
}

/** Limit on listed tests; the rest are counted. */
const MAX_LISTED_TESTS = 500;
const MAX_DIFF_LINES = 2_000;

export type CheckedPolicy =
  | { ok: false; problems: readonly string[] }
  | {
      ok: true;
      hash: string;
      rules: number;
      passed: number;
      failed: number;
      /** Failed tests first; only a part if there are very many. */
      tests: PolicyTestResult[];
      /** Diff to the active policy; empty if there is none. */
      diff: DiffLine[];
      /** Number of omitted diff lines. */
      diff_left: number;
    };

const READERS = {
  policy: ({ text, file }: Of<"policy">): ReadPolicy => {
    const doc = loadPolicy(text, file);
    return { doc, hash: valueHash(asJson(doc)) };
  },
  checked_policy: checkPolicy,
  policy_warnings: ({ policy, labels, now_ms }: Of<"policy_warnings">): string[] =>
    policyWarnings(given(policy), { labels: new Map(labels), now_ms, budget: budget(WARNING_MS) }),
  claims: ({ text, file, labels, now_ms }: Of<"claims">): ClaimResult[] =>
    checkClaims(compilePolicy(loadPolicy(text, file)), { labels: new Map(labels), now_ms, budget: budget() }),
  policy_diff: ({ a, b, labels, now_ms }: Of<"policy_diff">): PolicyDiff =>
    diffPolicies(given(a), given(b), {
      labels: new Map(labels),
      now_ms,
      budget: budget(),
      share: MAX_CALL_CLASSES / 4,
    }),
  trial: ({ text, typed, labels, now_ms }: Of<"trial">): PolicyTrial =>
    tryCall(compilePolicy(loadPolicy(text, "policy")), typed, new Map(labels), now_ms),
  kept_test: ({ text, test }: Of<"kept_test">): string => addTestToPolicy(text, test),
  manifests: ({ files }: Of<"manifests">) => manifestReading(files),
  draft: ({ given }: Of<"draft">) => buildManifestDraft(given),
  moved: ({ yaml, to }: Of<"moved">) => withLifecycle(yaml, to),
} as const;

/** Limit on call classes for a proof or a comparison. Beyond it the result is incomplete. */
const MAX_CALL_CLASSES = 400_000;
const PROVING_MS = 15_000;
/** Time limit for warnings, which accompany other responses. */
const WARNING_MS = 3_000;
const budget = (most_ms = PROVING_MS): SearchBudget => {
  const until = performance.now() + most_ms;
  return { cells: MAX_CALL_CLASSES, late: () => performance.now() > until };
};

function given(policy: GivenPolicy): CompiledPolicy {
  return compilePolicy("doc" in policy ? policy.doc : loadPolicy(policy.text, policy.file));
}

type Of<K extends ParseTask["read"]> = Extract<ParseTask, { read: K }>;
export type ParseResult<R extends ParseTask> = ReturnType<(typeof READERS)[R["read"]]>;

export function runParseTask<R extends ParseTask>(reading: R): ParseResult<R> {
  // The table has one parser per kind, which the types cannot express for the union.
  const read = READERS[reading.read] as unknown as (given: R) => ParseResult<R>;
  return read(reading);
}

function checkPolicy({ text, active, labels, now_ms }: Of<"checked_policy">): CheckedPolicy {
  let doc: PolicyDoc;
  try {
    doc = loadPolicy(text, "policy");
  } catch (error) {
    if (error instanceof ProblemsError) return { ok: false, problems: error.problems };
    throw error;
  }
  const policy = compilePolicy(doc);
  const known = new Map(labels);
  const results = runPolicyTests(policy, { manifestFor: (tool) => known.get(tool) ?? null, now_ms });
  const failing = results.filter(({ ok }) => !ok);
  const passing = results.filter(({ ok }) => ok);
  const diff = active === null ? [] : diffLines(stringify(active), stringify(doc));
  return {
    ok: true,
    hash: policy.hash,
    rules: doc.rules?.length ?? 0,
    passed: passing.length,
    failed: failing.length,
    tests: (failing.length === 0 ? results : [...failing, ...passing]).slice(0, MAX_LISTED_TESTS),
    diff: diff.slice(0, MAX_DIFF_LINES),
    diff_left: Math.max(0, diff.length - MAX_DIFF_LINES),
  };
}
