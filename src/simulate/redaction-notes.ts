/**
 * Finds policy entries that read a value which capture redacted or cut. The sandbox can decide such calls differently
 * than the live engine did, and the report says which.
 */
import type { JsonValue } from "../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import type { ValuePath } from "../kernel/paths.ts";
import { CONTENT_KINDS } from "../rules/policy/checks/content-kinds.ts";
import type { CompiledPolicy, PolicyCall } from "../rules/policy/compile.ts";

/** Placeholders of capture: `[REDACTED]`, `[REDACTED:github_token]`, `[PII:email]`, `[CUT]`. */
const MARK = /\[(?:REDACTED(?::[a-z0-9_]+)?|PII:[a-z0-9_]+|CUT)\]/;

/** Checks that only warn do not change decisions. */
const DECIDING: ReadonlySet<string | undefined> = new Set(["require_approval", "deny"]);

/** Texts such as `rule outside-mail reads $args.to`, for all policy entries that read a redacted value of this call. */
export function redactedReads(policy: CompiledPolicy, call: PolicyCall): string[] {
  const found = new Set<string>();
  const look = (who: string, path: ValuePath) => {
    if (isTouched(call.args, path.keys)) found.add(`${who} reads ${path.source}`);
  };
  for (const rule of policy.rules.matching(call))
    for (const { path } of rule.when) look(`rule ${rule.id}`, path);
  for (const budget of policy.budgets.matching(call)) look(`budget ${budget.id}`, budget.path);
  const { restricting, setting_off } = policy.flows;
  const isHidden = holdsMark(call.args);
  for (const { id, carries } of restricting.matching(call))
    if (carries && isHidden) found.add(`flow ${id} follows the values of all arguments`);
  for (const { id, carries, when } of setting_off.matching(call))
    if (carries || when !== null) found.add(`flow ${id} looks at the values of this call`);
  for (const kind of CONTENT_KINDS)
    if (DECIDING.has(policy.content[kind])) found.add(`the content check (${kind}) reads all arguments`);
  if (policy.content.max_bytes !== undefined) found.add("the content check (max_bytes) reads all arguments");
  return [...found];
}

/** True if capture changed the value or a value above it. */
function isTouched(value: JsonValue, keys: readonly (string | number)[]): boolean {
  let here: JsonValue | undefined = value;
  for (const key of keys) {
    if (typeof here === "string") return MARK.test(here);
    if (here === null || typeof here !== "object") return false;
    const next: JsonValue | undefined = Array.isArray(here)
      ? here[key as number]
      : Object.hasOwn(here, key)
        ? here[key]
        : undefined;
    if (next === undefined) return isCut(here);
    here = next;
  }
  return holdsMark(here);
}

/** A missing member can be cut off, or its name replaced. */
function isCut(container: JsonValue[] | { [name: string]: JsonValue }): boolean {
  const names = Object.keys(container);
  if (names.length >= SERVICE_LIMITS.capture_entries) return true;
  return !Array.isArray(container) && names.some((name) => MARK.test(name));
}

function holdsMark(value: JsonValue): boolean {
  if (typeof value === "string")
    return MARK.test(value) || value.length >= SERVICE_LIMITS.capture_string_chars;
  if (value === null || typeof value !== "object") return false;
  if (isCut(value as JsonValue[] | { [name: string]: JsonValue })) return true;
  return Object.values(value).some(holdsMark);
}

/** Counts findings over many calls and turns them into sentences. Above a limit, findings are only counted. */
export class RedactionNotes {
  private readonly counts = new Map<string, number>();
  private beyond = 0;

  add(policy: CompiledPolicy, call: PolicyCall): void {
    for (const read of redactedReads(policy, call)) {
      const known = this.counts.get(read);
      if (known !== undefined) this.counts.set(read, known + 1);
      else if (this.counts.size < MAX_REDACTION_NOTES) this.counts.set(read, 1);
      else this.beyond++;
    }
  }

  sentences(): string[] {
    const notes = [...this.counts].map(([read, calls]) => redactionNote(read, calls));
    if (this.beyond > 0) notes.push(`${this.beyond} more reads of redacted values are not listed`);
    return notes;
  }
}

const MAX_REDACTION_NOTES = 50;

function redactionNote(read: string, calls: number): string {
  const where = calls === 1 ? "1 captured call" : `${calls} captured calls`;
  return `${read}, redacted in ${where}: the decision may differ from the live one`;
}
