/** Changes to a run's calls for a replay: a new value at a path, in every call, in one step, or in one tool's calls. */
import { invalidError } from "../kernel/errors.ts";
import { toCanonicalJson } from "../kernel/json/canonical.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import { parsePath, readPath, type ValuePath } from "../kernel/paths.ts";
import type { HistoricCall } from "./recorded-call.ts";

export interface ReplayChange {
  /** Null for every step, and for calls without a step. */
  step: number | null;
  /** Null for every tool. */
  tool: string | null;
  /** Path such as `$args.amount`, or a path into the recorded `$result`. */
  path: string;
  value: JsonValue;
}

interface ParsedChange extends ReplayChange {
  at: ValuePath;
  applied: number;
  seen: number;
}

export class ChangeSet {
  private readonly changes: ParsedChange[];

  constructor(changes: readonly ReplayChange[]) {
    this.changes = changes.map((change) => ({ ...change, at: parsePath(change.path), applied: 0, seen: 0 }));
  }

  /** Applies all matching changes to a call, and returns whether there were any. */
  apply(call: HistoricCall): { call: HistoricCall; changed: boolean } {
    let { args, result } = call;
    let changed = false;
    for (const change of this.changes) {
      if (change.step !== null && change.step !== call.step) continue;
      if (change.tool !== null && change.tool !== call.tool) continue;
      change.seen++;
      const { root, keys } = change.at;
      if (root === "result" && !call.has_result) continue;
      const next = replaced(root === "args" ? args : result, keys, change.value);
      if (next === undefined) continue;
      change.applied++;
      changed = true;
      if (root === "args") args = next;
      else result = next;
    }
    return { call: changed ? { ...call, args, result } : call, changed };
  }

  /** Throws if a change matched nothing, so that a misspelt path does not look like a change without effect. */
  assertApplied(run_id: string): void {
    const problems = this.changes
      .filter(({ applied }) => applied === 0)
      .map((change) => lost(run_id, change));
    if (problems.length > 0) throw invalidError(problems.join("; "));
  }
}

function lost(run_id: string, { step, tool, path, seen }: ParsedChange): string {
  const where = [step === null ? null : `step ${step}`, tool === null ? null : `tool ${tool}`]
    .filter((part) => part !== null)
    .join(", ");
  if (seen === 0) return `${where}: no captured call of run ${run_id} matches, so ${path} cannot be set`;
  return `${path} does not exist in ${where === "" ? `any captured call of run ${run_id}` : where}`;
}

/** Copies a value with the part at the path replaced. Undefined if the path does not exist. */
function replaced(
  here: JsonValue | undefined,
  keys: readonly (string | number)[],
  value: JsonValue,
): JsonValue | undefined {
  const [key, ...rest] = keys;
  if (key === undefined) return here === undefined ? undefined : value;
  if (here === null || typeof here !== "object") return undefined;
  if (Array.isArray(here)) {
    if (typeof key !== "number" || key >= here.length) return undefined;
    const inner = replaced(here[key], rest, value);
    return inner === undefined ? undefined : here.with(key, inner);
  }
  const name = String(key);
  const inner = Object.hasOwn(here, name) ? replaced(here[name], rest, value) : undefined;
  return inner === undefined ? undefined : { ...here, [name]: inner };
}

/** True if two calls differ in a value that identifies their logical call. */
export function isRenamed(paths: readonly string[], before: HistoricCall, after: HistoricCall): boolean {
  const valueAt = (path: string, { args }: HistoricCall) =>
    readPath(parsePath(path), { args, result: undefined });
  return paths.some((path) => {
    const [old, now] = [valueAt(path, before), valueAt(path, after)];
    if (old === undefined || now === undefined) return old !== now;
    return toCanonicalJson(old) !== toCanonicalJson(now);
  });
}
