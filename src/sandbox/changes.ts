/** Changes to a run's calls for a replay: a value at a path, in every call, in one step, or in one tool's calls. */
import { canonical } from "../kernel/canonical.ts";
import { invalid } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import { type Path, parsePath, readPath } from "../kernel/paths.ts";
import type { PastCall } from "./past-call.ts";

export interface ReplayChange {
  /** Null: every step, and the calls that never became one. */
  step: number | null;
  /** Null: every tool. */
  tool: string | null;
  /** `$args.amount`, or into the recorded `$result`. */
  path: string;
  value: Json;
}

interface ParsedChange extends ReplayChange {
  at: Path;
  applied: number;
  seen: number;
}

export class ChangeSet {
  private readonly changes: ParsedChange[];

  constructor(changes: readonly ReplayChange[]) {
    this.changes = changes.map((change) => ({ ...change, at: parsePath(change.path), applied: 0, seen: 0 }));
  }

  /** The call with every change that fits it, and whether there was one. */
  apply(call: PastCall): { call: PastCall; changed: boolean } {
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

  /** Throws when a change found nothing to change: a misspelt path must not look like a change without effect. */
  assertApplied(run_id: string): void {
    const problems = this.changes
      .filter(({ applied }) => applied === 0)
      .map((change) => lost(run_id, change));
    if (problems.length > 0) throw invalid(problems.join("; "));
  }
}

function lost(run_id: string, { step, tool, path, seen }: ParsedChange): string {
  const where = [step === null ? null : `step ${step}`, tool === null ? null : `tool ${tool}`]
    .filter((part) => part !== null)
    .join(", ");
  if (seen === 0) return `${where}: no captured call of run ${run_id} fits, so ${path} cannot be set`;
  return `${path} does not exist in ${where === "" ? `any captured call of run ${run_id}` : where}`;
}

/** A copy with the value at the path exchanged; undefined where the path leads nowhere. */
function replaced(here: Json | undefined, keys: readonly (string | number)[], value: Json): Json | undefined {
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

/** Whether two calls differ in a value that names their logical call. */
export function isRenamed(paths: readonly string[], before: PastCall, after: PastCall): boolean {
  const valueAt = (path: string, { args }: PastCall) =>
    readPath(parsePath(path), { args, result: undefined });
  return paths.some((path) => {
    const [old, now] = [valueAt(path, before), valueAt(path, after)];
    if (old === undefined || now === undefined) return old !== now;
    return canonical(old) !== canonical(now);
  });
}
