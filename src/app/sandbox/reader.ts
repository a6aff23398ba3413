/**
 * Reading what people wrote, beside the process that serves decisions. What is short and plain is cheap and is read
 * at once; all else is read in a thread with a limit on its time.
 */
import { compiling, type Policy } from "../../model/policy/compile.ts";
import { doInTurns } from "../../process/turns.ts";
import { JOB_LIMITS, SandboxHost } from "./host.ts";
import type { PastCalls } from "./job.ts";
import { doReading, type GivenPolicy, type ReadAs, type Reading, type ReadPolicy } from "./readings.ts";

/** Reading costs a few microseconds a character at most. */
const SHORT_CHARS = 16_384;
/** Patterns cost by their counts and tests by their repeats; an escape could spell either. */
const COSTLY = /matches|repeat|\\/;
const never = new AbortController().signal;

/** What a caller sends waits its turn behind what others sent, and never holds up what the service reads for itself. */
const sent = new SandboxHost();
/** Files of the service's own may be far larger than what a caller can send. */
const own = new SandboxHost({ ...JOB_LIMITS, step_ms: JOB_LIMITS.total_ms });

export function readSent<R extends Reading>(reading: R, signal: AbortSignal = never): Promise<ReadAs<R>> {
  return read(sent, reading, signal);
}

/** Rules that are to be in force: of the service's own files, and of the registry. */
export function readOwn<R extends Reading>(reading: R): Promise<ReadAs<R>> {
  return read(own, reading, never);
}

async function read<R extends Reading>(
  host: SandboxHost,
  reading: R,
  signal: AbortSignal,
): Promise<ReadAs<R>> {
  if (isShort(reading)) return doReading(reading);
  return JSON.parse(await host.run(reading, nothing(), signal)) as ReadAs<R>;
}

async function* nothing(): AsyncGenerator<PastCalls> {}

const isPlain = (text: string): boolean => text.length <= SHORT_CHARS && !COSTLY.test(text);

const FEW_TOOLS = 100;
const FEW_ENTRIES = 10;

/** A policy of a few entries; a text of these few characters has no more. */
const FEW_CHARS = 600;

function isFew(policy: GivenPolicy): boolean {
  if ("text" in policy) return policy.text.length <= FEW_CHARS && isPlain(policy.text);
  const { doc } = policy;
  const { rules = [], flows = [], limits = [], budgets = [], windows = [], freezes = [], claims = [] } = doc;
  const entries = [rules, flows, limits, budgets, windows, freezes, claims];
  return entries.reduce((sum, { length }) => sum + length, 0) <= FEW_ENTRIES && isPlain(JSON.stringify(doc));
}

function isShort(reading: Reading): boolean {
  switch (reading.read) {
    case "checked_policy":
    case "policy":
      return isPlain(reading.text);
    case "trial":
      return reading.typed.repeat === "" && isPlain([reading.text, ...Object.values(reading.typed)].join());
    case "kept_test":
      return isPlain(reading.text + JSON.stringify(reading.test));
    case "manifests":
      return reading.files.reduce((sum, { text }) => sum + text.length, 0) <= SHORT_CHARS;
    case "draft": {
      const { given } = reading;
      const text = "yaml" in given ? given.yaml : JSON.stringify(given.manifest);
      return text.length <= SHORT_CHARS;
    }
    case "policy_warnings":
      // Each entry is held against the others and against every tool: only a few are looked at here.
      return reading.labels.length <= FEW_TOOLS && isFew(reading.policy);
    case "claims":
    case "policy_diff":
      return false;
    case "moved":
      return reading.yaml.length <= SHORT_CHARS;
  }
}

/** Compiles in turns, with room for other work between them. */
export function compileInTurns({ doc, hash }: ReadPolicy): Promise<Policy> {
  return doInTurns(compiling(doc, hash));
}
