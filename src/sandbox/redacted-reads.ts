/**
 * Where a policy looks inside a value that capture replaced or cut. It may then decide otherwise here than
 * it did live, and the report says so.
 */
import type { Json } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Path } from "../kernel/paths.ts";
import type { Policy, PolicyCall } from "../model/policy/compile.ts";
import { CONTENT_KINDS } from "../model/policy/content-kinds.ts";

/** What capture puts in the place of a value: `[REDACTED]`, `[REDACTED:github_token]`, `[PII:email]`, `[CUT]`. */
const MARK = /\[(?:REDACTED(?::[a-z0-9_]+)?|PII:[a-z0-9_]+|CUT)\]/;

/** A check that only warns decides nothing. */
const DECIDING: ReadonlySet<string | undefined> = new Set(["require_approval", "deny"]);

/** `rule outside-mail reads $args.to`, for everything in the policy that looks inside such a value of this call. */
export function redactedReads(policy: Policy, call: PolicyCall): string[] {
  const found = new Set<string>();
  const look = (who: string, path: Path) => {
    if (isTouched(call.args, path.keys)) found.add(`${who} reads ${path.source}`);
  };
  for (const rule of policy.rules.matching(call))
    for (const { path } of rule.when) look(`rule ${rule.id}`, path);
  for (const budget of policy.budgets.matching(call)) look(`budget ${budget.id}`, budget.path);
  for (const kind of CONTENT_KINDS)
    if (DECIDING.has(policy.content[kind])) found.add(`the content check (${kind}) reads all arguments`);
  if (policy.content.max_bytes !== undefined) found.add("the content check (max_bytes) reads all arguments");
  return [...found];
}

/** Whether the way to the value, or the value itself, was changed by capture. */
function isTouched(value: Json, keys: readonly (string | number)[]): boolean {
  let here: Json | undefined = value;
  for (const key of keys) {
    if (typeof here === "string") return MARK.test(here);
    if (here === null || typeof here !== "object") return false;
    const next: Json | undefined = Array.isArray(here)
      ? here[key as number]
      : Object.hasOwn(here, key)
        ? here[key]
        : undefined;
    if (next === undefined) return isCut(here);
    here = next;
  }
  return holdsMark(here);
}

/** What is missing here may have been cut off, or stand under a name that was replaced. */
function isCut(container: Json[] | { [name: string]: Json }): boolean {
  const names = Object.keys(container);
  if (names.length >= LIMITS.capture_entries) return true;
  return !Array.isArray(container) && names.some((name) => MARK.test(name));
}

function holdsMark(value: Json): boolean {
  if (typeof value === "string") return MARK.test(value) || value.length >= LIMITS.capture_string_chars;
  if (value === null || typeof value !== "object") return false;
  if (isCut(value as Json[] | { [name: string]: Json })) return true;
  return Object.values(value).some(holdsMark);
}

/** Counts what was found over many calls and puts it into sentences; the rest beyond a bound is counted. */
export class RedactionNotes {
  private readonly counts = new Map<string, number>();
  private beyond = 0;

  add(policy: Policy, call: PolicyCall): void {
    for (const read of redactedReads(policy, call)) {
      const known = this.counts.get(read);
      if (known !== undefined) this.counts.set(read, known + 1);
      else if (this.counts.size < MOST_NOTES) this.counts.set(read, 1);
      else this.beyond++;
    }
  }

  sentences(): string[] {
    const told = [...this.counts].map(([read, calls]) => redactionNote(read, calls));
    if (this.beyond > 0) told.push(`${this.beyond} more reads of redacted values are not listed`);
    return told;
  }
}

const MOST_NOTES = 50;

function redactionNote(read: string, calls: number): string {
  const where = calls === 1 ? "1 captured call" : `${calls} captured calls`;
  return `${read}, redacted in ${where}: the decision may differ from the live one`;
}
