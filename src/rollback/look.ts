/**
 * Looking at what is there now, for a plan. Each thing is read once; where a newer undo will change it first, what
 * the older one will meet is worked out, or left open where it cannot be.
 */
import { stateHash } from "../engine/before.ts";
import { canonical } from "../kernel/canonical.ts";
import { assertJson, type Json } from "../kernel/json.ts";
import type { Manifest } from "../model/manifest/types.ts";
import type { PayloadDoc, RunDoc, StepDoc } from "../model/run.ts";
import { classify, type Undo } from "./classify.ts";
import { compareState } from "./conflict.ts";
import type { StateNow } from "./plan.ts";
import type { Reader, ReadRequest, UndoObjection } from "./ports.ts";

/** Who can look; `objection` says which tools are not to be called. */
export interface Lookout {
  reader: Reader;
  objection?: UndoObjection | null | undefined;
}

/** The run with what its undos are built from. */
export interface Surroundings {
  run: Pick<RunDoc, "run_id" | "salt">;
  steps: readonly StepDoc[];
  manifests: ReadonlyMap<string, Manifest>;
  payloads: readonly (PayloadDoc | undefined)[];
}

/** A plan asks for no more reads than these, the newest steps first. */
const MOST_READS = 100;
const AT_ONCE = 8;
const READ_MS = 10_000;

export async function lookAround(
  { run, steps, manifests, payloads }: Surroundings,
  lookout: Lookout,
  now_ms: number,
): Promise<Map<number, StateNow>> {
  const undos: [number, Undo][] = [];
  for (const step of steps.toReversed()) {
    const manifest = step.manifest_hash === null ? undefined : manifests.get(step.manifest_hash);
    const standing = classify(step, manifest, payloads[step.step], now_ms);
    if (standing?.kind === "compensate") undos.push([step.step, standing.undo]);
  }
  const shown = await readAll(undos, lookout, run.run_id);
  const now = new Map<number, StateNow>();
  const expected = new Map<string, { hash: string; read: ReadRequest }>();
  const touched = new Set<string>();
  for (const [step, undo] of undos) {
    const { state } = undo;
    const key = state === null ? "" : keyOf(state.read);
    const is = shown.get(key);
    if (state !== null && is !== undefined) {
      const moved = !expected.has(key) && texts(state.read.arguments).some((text) => touched.has(text));
      const current_hash = expected.get(key)?.hash ?? stateHash(run.salt, state.declared, is);
      const conflict = compareState(state, current_hash) === "conflict";
      now.set(step, moved ? { is } : { is, seen: { current_hash, conflict } });
      if (!conflict && state.before_hash !== undefined)
        expected.set(key, { hash: state.before_hash, read: state.read });
    }
    const changes = texts(undo.args);
    for (const text of changes) touched.add(text);
    // What another undo puts there, such as a move back, is not what this one left.
    for (const [other, { read }] of expected)
      if (other !== key && texts(read.arguments).some((text) => changes.includes(text)))
        expected.delete(other);
  }
  return now;
}

const keyOf = ({ tool, arguments: args }: ReadRequest): string => canonical([tool, args]);

async function readAll(undos: readonly [number, Undo][], { reader, objection }: Lookout, run_id: string) {
  const wanted = new Map<string, ReadRequest>();
  for (const [, { state }] of undos)
    if (state !== null && wanted.size < MOST_READS) wanted.set(keyOf(state.read), state.read);
  const shown = new Map<string, Json>();
  const queue = [...wanted];
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [key, request] = next;
      try {
        if (await objection?.([request.tool])) continue;
        const value = await reader(request, AbortSignal.timeout(READ_MS), run_id);
        assertJson(value, "current");
        shown.set(key, value);
      } catch {
        // What cannot be read is left out of the plan; the undo itself will say so.
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return shown;
}

function texts(value: Json): string[] {
  if (typeof value === "string") return value === "" ? [] : [value];
  if (value === null || typeof value !== "object") return [];
  return Object.values(value).flatMap(texts);
}
