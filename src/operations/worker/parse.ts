/**
 * Parses user-written files without blocking decisions. Short, plain texts are parsed in place; all others are parsed
 * in a thread with a time limit. Short is measured over all passes: a draft is parsed and written several times.
 */
import { runInSlices } from "../../child-process/event-loop-slices.ts";
import { isLargeValue } from "../../kernel/json/large-value-cache.ts";
import { type CompiledPolicy, compilingPolicy } from "../../rules/policy/compile.ts";
import { JOB_LIMITS, SandboxHost } from "./host.ts";
import type { PastCalls } from "./job.ts";
import {
  type GivenPolicy,
  type ParseResult,
  type ParseTask,
  type ReadPolicy,
  runParseTask,
} from "./parse-tasks.ts";

/** Limit on characters parsed in place. Parsing takes up to ten microseconds per character. */
const MAX_CHARS_IN_PLACE = 4_096;
/** A draft is parsed, written as a list, parsed again and written with its lifecycle. */
const DRAFT_PASSES = 4;
/** Constructs with costs beyond their length: patterns and repeated tests, or an escape that could spell either. */
const COSTLY = /matches|repeat|\\/;
const never = new AbortController().signal;

/** Threads for callers' texts, separate from `own` so that callers never delay the service's own files. */
const sent = new SandboxHost();
/** The service's own files can be far larger than a request. */
const own = new SandboxHost({ ...JOB_LIMITS, step_ms: JOB_LIMITS.total_ms });

export function parseSubmitted<R extends ParseTask>(
  reading: R,
  signal: AbortSignal = never,
): Promise<ParseResult<R>> {
  return read(sent, reading, signal);
}

/** Parses rules that become active: the service's own files, and those of the registry. */
export function parseOwn<R extends ParseTask>(reading: R): Promise<ParseResult<R>> {
  return read(own, reading, never);
}

async function read<R extends ParseTask>(
  host: SandboxHost,
  reading: R,
  signal: AbortSignal,
): Promise<ParseResult<R>> {
  if (isParsedInPlace(reading)) return runParseTask(reading);
  return JSON.parse(await host.run(reading, nothing(), signal)) as ParseResult<R>;
}

async function* nothing(): AsyncGenerator<PastCalls> {}

const isPlain = (text: string): boolean => text.length <= MAX_CHARS_IN_PLACE && !COSTLY.test(text);

const FEW_TOOLS = 100;
const FEW_ENTRIES = 10;

/** A text of at most this length has only a few entries. */
const FEW_CHARS = 600;

function isFew(policy: GivenPolicy): boolean {
  if ("text" in policy) return policy.text.length <= FEW_CHARS && isPlain(policy.text);
  const { doc } = policy;
  const { rules = [], flows = [], limits = [], budgets = [], windows = [], freezes = [], claims = [] } = doc;
  const entries = [rules, flows, limits, budgets, windows, freezes, claims];
  return entries.reduce((sum, { length }) => sum + length, 0) <= FEW_ENTRIES && isPlain(JSON.stringify(doc));
}

export function isParsedInPlace(reading: ParseTask): boolean {
  switch (reading.read) {
    case "checked_policy":
    case "policy":
      return isPlain(reading.text);
    case "trial":
      return reading.typed.repeat === "" && isPlain([reading.text, ...Object.values(reading.typed)].join());
    case "kept_test":
      return isPlain(reading.text + JSON.stringify(reading.test));
    case "manifests":
      return reading.files.reduce((sum, { text }) => sum + text.length, 0) <= MAX_CHARS_IN_PLACE;
    case "draft": {
      const { given } = reading;
      if ("manifest" in given && isLargeValue(given.manifest)) return false;
      const text = "yaml" in given ? given.yaml : JSON.stringify(given.manifest);
      return text.length * DRAFT_PASSES <= MAX_CHARS_IN_PLACE;
    }
    case "policy_warnings":
      // Each entry is compared with all others and with every tool, so only a few are checked in place.
      return reading.labels.length <= FEW_TOOLS && isFew(reading.policy);
    case "claims":
    case "policy_diff":
      return false;
    case "moved":
      return reading.yaml.length <= MAX_CHARS_IN_PLACE;
  }
}

/** Compiles in turns, with pauses for other work. */
export function compileInTurns({ doc, hash }: ReadPolicy): Promise<CompiledPolicy> {
  return runInSlices(compilingPolicy(doc, hash));
}
