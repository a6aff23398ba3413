/**
 * Reading what people wrote: policies and manifests as YAML, their tests, and the difference to what is in force.
 * All of it is pure and takes and gives plain data, so that it can be done in a thread and be stopped there.
 */
import { stringify } from "yaml";
import { type DiffLine, diffLines } from "../../kernel/diff.ts";
import { ProblemsError } from "../../kernel/errors.ts";
import { valueHash } from "../../kernel/hash.ts";
import type { Json, JsonObject } from "../../kernel/json.ts";
import type { ManifestFile } from "../../model/manifest/entry.ts";
import type { ToolLabels } from "../../model/manifest/labels.ts";
import { manifestReading } from "../../model/manifest/load.ts";
import type { Lifecycle } from "../../model/manifest/types.ts";
import { compilePolicy, type Policy } from "../../model/policy/compile.ts";
import { keepTest } from "../../model/policy/keep-test.ts";
import { loadPolicy } from "../../model/policy/load.ts";
import { type ClaimResult, checkClaims } from "../../model/policy/prove/claims.ts";
import { diffPolicies, type PolicyDiff } from "../../model/policy/prove/diff.ts";
import { policyWarnings } from "../../model/policy/prove/idle.ts";
import type { SearchBudget } from "../../model/policy/prove/search.ts";
import type { PolicyDoc, PolicyTestDoc } from "../../model/policy/schema.ts";
import { type PolicyTestResult, runPolicyTests } from "../../model/policy/tests.ts";
import { type Trial, type TypedCall, tryCall } from "../../model/policy/trial.ts";
import { draftOf, withLifecycle } from "../../registry/draft.ts";

/** What is to be read, by what comes of it. */
export type Reading =
  | { read: "policy"; text: string; file: string }
  | {
      read: "checked_policy";
      text: string;
      active: PolicyDoc | null;
      labels: readonly Labelled[];
      now_ms: number;
    }
  | { read: "policy_warnings"; policy: GivenPolicy; labels: readonly Labelled[]; now_ms: number }
  | { read: "claims"; text: string; file: string; labels: readonly Labelled[]; now_ms: number }
  | { read: "policy_diff"; a: GivenPolicy; b: GivenPolicy; labels: readonly Labelled[]; now_ms: number }
  | { read: "trial"; text: string; typed: TypedCall; labels: readonly Labelled[]; now_ms: number }
  | { read: "kept_test"; text: string; test: PolicyTestDoc }
  | { read: "manifests"; files: readonly ManifestFile[] }
  | { read: "draft"; given: { manifest: JsonObject } | { yaml: string } }
  | { read: "moved"; yaml: string; to: Lifecycle };

/** A policy as its author wrote it, or as it is in force. */
export type GivenPolicy = { text: string; file: string } | { doc: PolicyDoc };

/** What a tool's manifest says of it, for tests that name the tool. */
export type Labelled = readonly [tool: string, labels: ToolLabels];

export interface ReadPolicy {
  doc: PolicyDoc;
  hash: string;
}

/** A person does not read further; the rest is counted. */
const MOST_TESTS = 500;
const MOST_LINES = 2_000;

export type CheckedPolicy =
  | { ok: false; problems: readonly string[] }
  | {
      ok: true;
      hash: string;
      rules: number;
      passed: number;
      failed: number;
      /** Those that fail come first; not all where there are very many. */
      tests: PolicyTestResult[];
      /** Against the policy in force, by what both say; empty where there was none to compare with. */
      diff: DiffLine[];
      /** How many lines of it are left out. */
      diff_left: number;
    };

const READERS = {
  policy: ({ text, file }: Of<"policy">): ReadPolicy => {
    const doc = loadPolicy(text, file);
    return { doc, hash: valueHash(doc as unknown as Json) };
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
      share: MOST_KINDS / 4,
    }),
  trial: ({ text, typed, labels, now_ms }: Of<"trial">): Trial =>
    tryCall(compilePolicy(loadPolicy(text, "policy")), typed, new Map(labels), now_ms),
  kept_test: ({ text, test }: Of<"kept_test">): string => keepTest(text, test),
  manifests: ({ files }: Of<"manifests">) => manifestReading(files),
  draft: ({ given }: Of<"draft">) => draftOf(given),
  moved: ({ yaml, to }: Of<"moved">) => withLifecycle(yaml, to),
} as const;

/** Kinds of calls that a proof or a comparison may look at, and how long; beyond that it is incomplete. */
const MOST_KINDS = 400_000;
const PROVING_MS = 15_000;
/** Warnings come with other answers, which should not wait long for them. */
const WARNING_MS = 3_000;
const budget = (most_ms = PROVING_MS): SearchBudget => {
  const until = performance.now() + most_ms;
  return { cells: MOST_KINDS, late: () => performance.now() > until };
};

function given(policy: GivenPolicy): Policy {
  return compilePolicy("doc" in policy ? policy.doc : loadPolicy(policy.text, policy.file));
}

type Of<K extends Reading["read"]> = Extract<Reading, { read: K }>;
export type ReadAs<R extends Reading> = ReturnType<(typeof READERS)[R["read"]]>;

export function doReading<R extends Reading>(reading: R): ReadAs<R> {
  // The table has one reader for each kind, which the types cannot follow through the union.
  const read = READERS[reading.read] as unknown as (given: R) => ReadAs<R>;
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
    tests: (failing.length === 0 ? results : [...failing, ...passing]).slice(0, MOST_TESTS),
    diff: diff.slice(0, MOST_LINES),
    diff_left: Math.max(0, diff.length - MOST_LINES),
  };
}
